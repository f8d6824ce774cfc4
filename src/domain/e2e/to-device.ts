import { hash } from 'node:crypto'
import { ProtocolError } from '../../core/errors.ts'
import { isUserId, type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import { isWellFormed, type JsonObject, type JsonOffence } from '../../core/json.ts'
import type { Tx } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import { sendToDevices, type ToDeviceEntry } from '../../store/keys/to-device.ts'
import type { Requester } from '../accounts/requester.ts'
import type { ServiceMessages } from '../appservices/news.ts'
import type { Clock } from '../clock.ts'
import type { FanOut } from '../fan-out.ts'
import { MAX_TO_DEVICE_BYTES, MAX_TO_DEVICE_CALL_BYTES, MAX_TO_DEVICE_MESSAGES } from '../limits.ts'
import type { Notifier } from '../sync/notifier.ts'
import type { Inboxes } from './inboxes.ts'

/** User id, then device id or `*` for all of the user's devices, then content. */
export type ToDeviceMessages = Readonly<Record<string, Readonly<Record<string, JsonObject>>>>

/** One call of a client. */
export interface ToDeviceRequest {
  readonly type: string
  readonly messages: ToDeviceMessages
  /** What the messages contain that canonical JSON forbids. */
  readonly offence: JsonOffence | undefined
  /** The request's path with its transaction id. */
  readonly path: string
}

/** To-device messages to remote users. */
export interface RemoteToDevice {
  /** Queues messages for delivery, in the transaction that stores the local ones of the same call. Called once per call of a client. */
  send(
    tx: Tx,
    message: { readonly sender: UserId; readonly type: string; readonly entries: readonly ToDeviceEntry[] },
  ): Promise<void>
  /** Call this after that transaction is committed. */
  sent(entries: readonly ToDeviceEntry[]): void
}

export interface ToDevice {
  /**
   * Sends to-device messages, once for each device of the sender and transaction id (client-server API, `PUT sendToDevice`). Unknown
   * users and devices are ignored. All messages of a call arrive, or none; those of one sender arrive in the order of the calls.
   *
   * @throws ProtocolError `M_INVALID_PARAM`, `M_BAD_JSON`, `M_TOO_LARGE`, `M_LIMIT_EXCEEDED`
   */
  send(by: Requester, request: ToDeviceRequest): Promise<void>
}

export function createToDevice(deps: {
  readonly serverName: ServerName
  readonly ledger: Ledger
  readonly clock: Clock
  readonly inboxes: Inboxes
  /** The sync notifier, woken after messages were written. */
  readonly notifier: Pick<Notifier, 'wakeUsers'>
  readonly remote: RemoteToDevice
  readonly fanOut: Pick<FanOut, 'require'>
  readonly services: ServiceMessages
}): ToDevice {
  const { serverName, ledger, clock, inboxes, notifier, remote, fanOut, services } = deps

  return {
    async send(by, { type, messages, offence, path }) {
      const entries = entriesOf(messages)
      const local = entries.filter(({ userId }) => serverOf(userId) === serverName)
      const toOthers = entries.filter(({ userId }) => serverOf(userId) !== serverName)
      if (toOthers.length > 0 && offence !== undefined) {
        throw new ProtocolError('M_BAD_JSON', `The messages cannot be sent to other servers: ${offence}.`)
      }
      if (toOthers.length > 0) await fanOut.require(by, [...usersOf(toOthers)])
      const call = {
        from: by,
        sender: by.userId,
        txnHash: hash('sha256', path, 'base64').slice(0, 22),
        sentAt: clock.now(),
        type,
        entries: local,
        maxMessages: MAX_TO_DEVICE_MESSAGES,
        maxBytes: MAX_TO_DEVICE_CALL_BYTES,
      }
      const takers = services.takersOf(usersOf(local))
      const { isTooLarge, recipients } = await ledger.append(
        async (tx, position) => {
          const sent = await sendToDevices(tx, call, position)
          if (sent.isNew && toOthers.length > 0) {
            await remote.send(tx, { sender: by.userId, type, entries: toOthers })
          }
          if (sent.recipients.length > 0 && takers.length > 0) await services.take(tx, takers, position)
          return sent
        },
        (sent, position) => inboxes.arrived(sent.recipients, position),
      )
      if (isTooLarge) throw tooLarge()
      remote.sent(toOthers)
      services.taken(takers)
      notifier.wakeUsers([...new Set(recipients.map(({ userNid }) => userNid))])
      await inboxes.trim(recipients)
    },
  }
}

/** The users of the entries, each once. */
export function usersOf(entries: readonly ToDeviceEntry[]): ReadonlySet<UserId> {
  return new Set(entries.map(({ userId }) => userId))
}

function tooLarge(): ProtocolError {
  const megabytes = MAX_TO_DEVICE_CALL_BYTES / 2 ** 20
  const message = `One call may send ${MAX_TO_DEVICE_MESSAGES} messages of ${megabytes} MiB together. Spread them over several.`
  return new ProtocolError('M_TOO_LARGE', message)
}

/** The messages one by one. A message to an impossible device id is dropped. */
function entriesOf(messages: ToDeviceMessages): ToDeviceEntry[] {
  const entries: ToDeviceEntry[] = []
  for (const [userId, devices] of Object.entries(messages)) {
    if (!isUserId(userId)) throw new ProtocolError('M_INVALID_PARAM', "A key of 'messages' is not a user id.")
    for (const [deviceId, message] of Object.entries(devices)) {
      const content = JSON.stringify(message)
      if (Buffer.byteLength(content) > MAX_TO_DEVICE_BYTES) {
        throw new ProtocolError('M_TOO_LARGE', `A message may have ${MAX_TO_DEVICE_BYTES} bytes.`)
      }
      if (isWellFormed(deviceId) && !deviceId.includes('\0')) entries.push({ userId, deviceId, content })
    }
  }
  if (entries.length > MAX_TO_DEVICE_MESSAGES) throw tooLarge()
  return entries
}

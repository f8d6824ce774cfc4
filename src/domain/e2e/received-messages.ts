import { createHash } from 'node:crypto'
import { isUserId, type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import { isObject, isWellFormed, type JsonObject, type JsonValue } from '../../core/json.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import { receiveForDevices, type ToDeviceEntry } from '../../store/keys/to-device.ts'
import type { ServiceMessages } from '../appservices/news.ts'
import type { Clock } from '../clock.ts'
import {
  MAX_TO_DEVICE_BYTES,
  MAX_TO_DEVICE_CALL_BYTES,
  MAX_TO_DEVICE_MESSAGES,
  MAX_TO_DEVICE_TYPE_CHARS,
} from '../limits.ts'
import type { Notifier } from '../sync/notifier.ts'
import type { Inboxes } from './inboxes.ts'
import { usersOf } from './to-device.ts'

export interface ReceivedMessages {
  /**
   * Stores to-device messages for local devices, once for each origin and `message_id`, in whatever transaction they come. Malformed
   * ones, and those whose sender is not a user of the origin, are ignored (server-server API, `m.direct_to_device`).
   *
   * @throws ProtocolError 503 while the database is unreachable
   */
  receive(origin: ServerName, content: JsonObject): Promise<void>
}

/** In code points. */
const MAX_MESSAGE_ID = 32

export function createReceivedMessages(deps: {
  readonly serverName: ServerName
  readonly ledger: Ledger
  readonly clock: Clock
  readonly inboxes: Inboxes
  readonly notifier: Pick<Notifier, 'wakeUsers'>
  readonly services: ServiceMessages
}): ReceivedMessages {
  const { serverName, ledger, clock, inboxes, notifier, services } = deps

  return {
    async receive(origin, { sender, type, message_id: messageId, messages }) {
      if (!isUserId(sender) || serverOf(sender) !== origin) return
      if (!isText(type) || type.length > MAX_TO_DEVICE_TYPE_CHARS) return
      if (!isText(messageId) || [...messageId].length > MAX_MESSAGE_ID) return
      const entries = isObject(messages) ? entriesOf(messages, serverName) : []
      if (entries.length === 0) return
      const call = {
        messageHash: createHash('sha256').update(`${origin} ${messageId}`).digest(),
        receivedAt: clock.now(),
        ...{ sender, type, entries },
        maxMessages: MAX_TO_DEVICE_MESSAGES,
        maxBytes: MAX_TO_DEVICE_CALL_BYTES,
      }
      const takers = services.takersOf(usersOf(entries))
      const { recipients } = await ledger.append(
        async (tx, position) => {
          const sent = await receiveForDevices(tx, call, position)
          if (sent.recipients.length > 0 && takers.length > 0) await services.take(tx, takers, position)
          return sent
        },
        (sent, position) => inboxes.arrived(sent.recipients, position),
      )
      services.taken(takers)
      notifier.wakeUsers([...new Set(recipients.map(({ userNid }) => userNid))])
      await inboxes.trim(recipients)
    },
  }
}

function isText(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && isWellFormed(value) && !value.includes('\0')
}

/** A message that is too large is dropped without affecting the others. */
function entriesOf(messages: JsonObject, serverName: ServerName): ToDeviceEntry[] {
  return Object.entries(messages).flatMap(([userId, devices]) => {
    if (!isUserId(userId) || serverOf(userId) !== serverName || !isObject(devices)) return []
    return Object.entries(devices).flatMap(([deviceId, message]) => {
      const content = isText(deviceId) && isObject(message) ? JSON.stringify(message) : undefined
      if (content === undefined || Buffer.byteLength(content) > MAX_TO_DEVICE_BYTES) return []
      return [{ userId: userId as UserId, deviceId, content }]
    })
  })
}

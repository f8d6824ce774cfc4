import { ProtocolError } from '../../core/errors.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import { createKeyedQueue } from '../../core/keyed-queue.ts'
import { parseExact, writeJson } from '../../core/large-integers.ts'
import { deleteDevices, ensureDevice, findDevice } from '../../store/accounts/devices.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import { findDehydratedDevice, storeDehydratedDevice } from '../../store/keys/dehydrated-devices.ts'
import { type ToDeviceRow, toDeviceBetween } from '../../store/keys/to-device.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Clock } from '../clock.ts'
import { MAX_DEHYDRATED_DATA_BYTES, MAX_DEHYDRATED_EVENTS } from '../limits/dehydrated-devices.ts'
import { MAX_DEVICE_NAME_CHARS } from '../limits.ts'
import { checkText } from '../text.ts'
import type { KeyUpload, KeyUploads } from './upload.ts'

/** Body of `PUT dehydrated_device`. */
export interface NewDehydratedDevice {
  readonly deviceId: string
  readonly data: JsonObject
  readonly displayName: string | undefined
  readonly keys: KeyUpload & { readonly deviceKeys: JsonObject }
}

export interface DehydratedEvents {
  readonly events: readonly JsonObject[]
  /** Only if there are more. */
  readonly next_batch?: string
}

/**
 * A device that receives keys for a user while no other device of theirs exists (MSC3814). Whoever signs in later makes it of its stored
 * data, reads its messages, and replaces it.
 */
export interface DehydratedDevices {
  /**
   * Puts a device in the place of the one before, whose keys and messages go with it.
   *
   * @throws ProtocolError `M_INVALID_PARAM`, `M_MISSING_PARAM`, `M_TOO_LARGE`, and what uploading keys throws
   */
  put(by: Requester, wish: NewDehydratedDevice): Promise<void>
  /** @throws ProtocolError `M_NOT_FOUND` */
  get(by: Requester): Promise<{ readonly device_id: string; readonly device_data: JsonObject }>
  /** @returns its id. @throws ProtocolError `M_NOT_FOUND` */
  remove(by: Requester): Promise<string>
  /**
   * The messages that wait for it, the oldest first. They stay: another device may have to read them again.
   *
   * @param from `next_batch` of an earlier answer
   * @throws ProtocolError `M_FORBIDDEN` for a device that is not the dehydrated one
   */
  events(by: Requester, deviceId: string, from: string | undefined): Promise<DehydratedEvents>
}

export interface DehydratedDeviceParts {
  readonly db: Database
  readonly clock: Clock
  readonly keyUploads: KeyUploads
  /** Removes a device as its user would. */
  readonly devices: { remove(userNid: number, deviceIds: readonly string[]): Promise<void> }
  readonly sessions: { forget(userNid: number, deviceId: string): void }
}

export function createDehydratedDevices(parts: DehydratedDeviceParts): DehydratedDevices {
  const { db, clock, keyUploads, devices, sessions } = parts
  /** Of two at once in one transaction, each would miss the other, and leave a device behind. */
  const turns = createKeyedQueue<number>()

  async function existing({ userNid }: Requester) {
    const found = await findDehydratedDevice(db, userNid)
    if (found) return found
    throw new ProtocolError('M_NOT_FOUND', 'You have no dehydrated device.')
  }

  /** Makes the device, in the transaction that stores its keys. Gives the device that it replaces. */
  async function makeRoom(tx: Tx, { userNid }: Requester, wish: NewDehydratedDevice): Promise<readonly string[]> {
    const { deviceId, displayName } = wish
    const before = await findDehydratedDevice(tx, userNid)
    const removed = before && before.device_id !== deviceId ? await deleteDevices(tx, userNid, [before.device_id]) : []
    const isNew = await ensureDevice(tx, { userNid, deviceId, displayName, createdAt: clock.now() })
    if (!isNew && before?.device_id !== deviceId) throw nameTaken()
    await storeDehydratedDevice(tx, { userNid, deviceId, data: writeJson(wish.data) })
    return removed
  }

  async function putInTurn(by: Requester, wish: NewDehydratedDevice): Promise<void> {
    const [before, other] = await Promise.all([
      findDehydratedDevice(db, by.userNid),
      findDevice(db, by.userNid, wish.deviceId),
    ])
    if (other !== undefined && before?.device_id !== wish.deviceId) throw nameTaken()
    let replaced: readonly string[] = []
    await keyUploads.upload({ ...by, deviceId: wish.deviceId }, wish.keys, async (tx) => {
      replaced = await makeRoom(tx, by, wish)
      return replaced
    })
    // Somebody may have signed in under the name of the one before.
    for (const deviceId of replaced) sessions.forget(by.userNid, deviceId)
  }

  return {
    async put(by, wish) {
      checkWish(wish)
      await turns.run(by.userNid, () => putInTurn(by, wish))
    },
    async get(by) {
      const { device_id, device_data } = await existing(by)
      return { device_id, device_data: parseExact(device_data) as JsonObject }
    },
    async remove(by) {
      const { device_id } = await existing(by)
      await devices.remove(by.userNid, [device_id])
      return device_id
    },
    async events({ userNid }, deviceId, from) {
      const found = await findDehydratedDevice(db, userNid)
      if (found?.device_id !== deviceId) {
        throw new ProtocolError('M_FORBIDDEN', 'This is not your dehydrated device.')
      }
      const device = { userNid, deviceId }
      const rows = await toDeviceBetween(
        db,
        device,
        positionIn(from),
        Number.MAX_SAFE_INTEGER,
        MAX_DEHYDRATED_EVENTS + 1,
      )
      const given = wholePositions(rows)
      const events = given.map(({ sender, type, content }) => ({ sender, type, content: parseExact(content) }))
      return { events, ...(given.length < rows.length && { next_batch: String(given.at(-1)!.position) }) }
    },
  }
}

function checkWish({ deviceId, data, displayName, keys }: NewDehydratedDevice): void {
  if (displayName !== undefined) checkText('initial_device_display_name', displayName, MAX_DEVICE_NAME_CHARS)
  if (typeof data.algorithm !== 'string') {
    throw new ProtocolError('M_MISSING_PARAM', "'device_data' lacks its algorithm.")
  }
  if (Buffer.byteLength(writeJson(data)) > MAX_DEHYDRATED_DATA_BYTES) {
    throw new ProtocolError('M_TOO_LARGE', `'device_data' may have ${MAX_DEHYDRATED_DATA_BYTES} bytes.`)
  }
  const { deviceKeys, fallbackKeys } = keys
  if (deviceKeys.dehydrated !== true) {
    throw new ProtocolError('M_INVALID_PARAM', "'device_keys.dehydrated' must be true.")
  }
  const identity = isObject(deviceKeys.keys) ? deviceKeys.keys[`curve25519:${deviceId}`] : undefined
  if (identity !== deviceId) {
    throw new ProtocolError('M_INVALID_PARAM', "'device_id' must be the Curve25519 identity key of the device.")
  }
  if (Object.keys(fallbackKeys).length > 0) return
  throw new ProtocolError('M_MISSING_PARAM', "'fallback_keys' must hold a key: nobody uploads others for this device.")
}

function nameTaken(): ProtocolError {
  return new ProtocolError('M_INVALID_PARAM', 'Another of your devices has this id.')
}

/** @throws ProtocolError `M_INVALID_PARAM` */
function positionIn(from: string | undefined): number {
  if (from === undefined || from === '') return 0
  if (/^\d{1,15}$/.test(from)) return Number(from)
  throw new ProtocolError('M_INVALID_PARAM', "'from' is not from an earlier answer.")
}

/** As many messages as fit into an answer, with all of a position. */
function wholePositions(rows: readonly ToDeviceRow[]): readonly ToDeviceRow[] {
  if (rows.length <= MAX_DEHYDRATED_EVENTS) return rows
  const next = rows[MAX_DEHYDRATED_EVENTS]!.position
  return rows.slice(0, MAX_DEHYDRATED_EVENTS).filter(({ position }) => position < next)
}

import { RoughCache } from '../../core/cache.ts'
import type { Database } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import {
  type DeviceKey,
  inboxBounds,
  removeToDevice,
  type ToDeviceRow,
  toDeviceBetween,
  trimToDevice,
} from '../../store/keys/to-device.ts'
import { MAX_TO_DEVICE_BYTES_WAITING } from '../limits/to-device.ts'
import { MAX_TO_DEVICE_PER_SYNC, MAX_TO_DEVICE_WAITING, TO_DEVICE_COUNTED_EVERY } from '../limits.ts'

/** The messages of one sync. */
export interface Mail {
  /** The ledger position up to which the messages are complete. */
  readonly upTo: number
  /** The messages, without those that the client has acknowledged meanwhile in a parallel sync. */
  messages(): readonly ToDeviceRow[]
}

/**
 * To-device messages that wait for devices. The state of an inbox is cached, so that a sync of a device without messages does not query
 * the database.
 */
export interface Inboxes {
  /**
   * The messages to a device after ledger position `after`, up to and including `upTo`, as many as fit into an answer. The client has
   * those up to `after`: they are deleted before this resolves, and never sent again.
   *
   * @param most messages wanted
   */
  read(device: DeviceKey, after: number, upTo: number, most?: number): Mail | Promise<Mail>
  /** Whether the inbox is known to be empty. False if the database has not been read yet. */
  isEmpty(device: DeviceKey): boolean
  /** Messages were committed at a position. Call this before the position is published. */
  arrived(devices: readonly DeviceKey[], position: number): void
  /** Brings the inboxes of those devices down to their limit, if they may exceed it. */
  trim(devices: readonly DeviceKey[]): Promise<void>
}

interface Inbox {
  /** No message is older than `oldest` or newer than `newest`: Infinity and 0 if there is none. */
  oldest: number
  newest: number
  /** The highest position in a token of the client. */
  acknowledged: number
  /** Messages that arrived since the last count. */
  uncounted: number
  /** Reads what was written before this process began to watch. */
  known: Promise<void> | undefined
  isKnown: boolean
}

const newInbox = (): Inbox => ({
  oldest: Infinity,
  newest: 0,
  acknowledged: 0,
  uncounted: 0,
  known: undefined,
  isKnown: false,
})

const MAX_INBOXES_IN_MEMORY = 50_000

export function createInboxes({ db, ledger }: { readonly db: Database; readonly ledger: Ledger }): Inboxes {
  const inboxes = new RoughCache<string, Inbox>(MAX_INBOXES_IN_MEMORY)
  /** A look asks several times for the same one. */
  let last: (DeviceKey & { readonly inbox: Inbox }) | undefined
  ledger.onMissed(() => {
    inboxes.clear()
    last = undefined
  })

  function inboxOf({ userNid, deviceId }: DeviceKey): Inbox {
    if (last?.userNid === userNid && last.deviceId === deviceId) return last.inbox
    const key = `${userNid} ${deviceId}`
    let inbox = inboxes.get(key)
    if (inbox === undefined) {
      inbox = newInbox()
      inboxes.set(key, inbox)
    }
    last = { userNid, deviceId, inbox }
    return inbox
  }

  async function getToKnow(inbox: Inbox, device: DeviceKey): Promise<void> {
    try {
      const bounds = await inboxBounds(db, device)
      inbox.isKnown = true
      if (!bounds) return
      inbox.oldest = Math.min(inbox.oldest, bounds.oldest)
      inbox.newest = Math.max(inbox.newest, bounds.newest)
    } catch (error) {
      inbox.known = undefined
      throw error
    }
  }

  async function remove(inbox: Inbox, device: DeviceKey, upTo: number): Promise<void> {
    await ledger.append((tx) => removeToDevice(tx, device, upTo))
    inbox.oldest = inbox.newest > upTo ? upTo + 1 : Infinity
  }

  async function readRows(inbox: Inbox, device: DeviceKey, after: number, upTo: number, most: number): Promise<Mail> {
    if (!inbox.isKnown) {
      inbox.known ??= getToKnow(inbox, device)
      await inbox.known
    }
    inbox.acknowledged = Math.max(inbox.acknowledged, after)
    if (inbox.oldest <= after) await remove(inbox, device, after)
    if (inbox.newest <= after) return { upTo, messages: noMessages }
    const rows = await toDeviceBetween(db, device, after, upTo, most + MAX_OF_A_CALL)
    const given = wholeCalls(rows, most)
    return {
      upTo: given.length < rows.length ? given.at(-1)!.position : upTo,
      messages: () => given.filter(({ position }) => position > inbox.acknowledged),
    }
  }

  return {
    read(device, after, upTo, most = MAX_TO_DEVICE_PER_SYNC) {
      const inbox = inboxOf(device)
      if (!inbox.isKnown || inbox.oldest !== Infinity) return readRows(inbox, device, after, upTo, most)
      inbox.acknowledged = Math.max(inbox.acknowledged, after)
      return { upTo, messages: noMessages }
    },

    isEmpty(device) {
      const { isKnown, oldest } = inboxOf(device)
      return isKnown && oldest === Infinity
    },

    arrived(devices, position) {
      for (const device of devices) {
        const inbox = inboxOf(device)
        inbox.oldest = Math.min(inbox.oldest, position)
        inbox.newest = position
        inbox.uncounted += 1
      }
    },

    async trim(devices) {
      const due = devices.filter((device) => inboxOf(device).uncounted >= TO_DEVICE_COUNTED_EVERY)
      await Promise.all(
        due.map(async (device) => {
          inboxOf(device).uncounted = 0
          await ledger.append((tx) => trimToDevice(tx, device, KEPT))
        }),
      )
    },
  }
}

const KEPT = { messages: MAX_TO_DEVICE_WAITING, bytes: MAX_TO_DEVICE_BYTES_WAITING }

const noMessages = (): readonly ToDeviceRow[] => []

/** Messages of one call to one device: one to it alone, and one to all devices. They share a position and stay together. */
const MAX_OF_A_CALL = 2

/** As many messages as fit into an answer, and at least those of one call. */
function wholeCalls(rows: readonly ToDeviceRow[], most: number): readonly ToDeviceRow[] {
  const next = rows[most]?.position
  if (next === undefined) return rows
  const given = rows.slice(0, most).filter(({ position }) => position < next)
  return given.length > 0 ? given : rows.filter(({ position }) => position === next)
}

import { createCache } from '../../core/cache.ts'
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
import { MAX_TO_DEVICE_PER_SYNC, MAX_TO_DEVICE_WAITING, TO_DEVICE_COUNTED_EVERY } from '../limits.ts'

/** What a sync gives a device of the messages that wait for it. */
export interface Mail {
  /** The ledger position up to which it is complete. */
  readonly upTo: number
  /** The messages; none that a client has acknowledged by now, in a sync beside this one. */
  messages(): readonly ToDeviceRow[]
}

/**
 * Messages that wait for devices. What is known of an inbox stays in memory, so that a sync of a device for which nothing waits
 * asks the database nothing.
 */
export interface Inboxes {
  /**
   * The messages to a device after ledger position `after`, up to and with `upTo`, as many as fit into an answer. Its client has
   * those up to `after`: they are removed before this resolves, and never given again.
   */
  read(device: DeviceKey, after: number, upTo: number): Mail | Promise<Mail>
  /** Whether nothing waits for a device, as far as memory knows: false where the database has not been asked yet. */
  isEmpty(device: DeviceKey): boolean
  /** Messages were committed at a position. To be called before it is published. */
  arrived(devices: readonly DeviceKey[], position: number): void
  /** Brings those devices' inboxes to their cap that may be above it. */
  trim(devices: readonly DeviceKey[]): Promise<void>
}

interface Inbox {
  /** Nothing older waits than the one, nothing newer than the other: Infinity and 0 when nothing does. */
  oldest: number
  newest: number
  /** A client came back with a token of this position. */
  acknowledged: number
  /** Messages that came in since it was counted. */
  uncounted: number
  /** Finds out what was written before this process began to watch. */
  known: Promise<void> | undefined
  isKnown: boolean
}

const MAX_INBOXES_IN_MEMORY = 50_000

export function createInboxes({ db, ledger }: { readonly db: Database; readonly ledger: Ledger }): Inboxes {
  const inboxes = createCache<string, Inbox>(MAX_INBOXES_IN_MEMORY)
  ledger.onMissed(() => inboxes.clear())

  function inboxOf({ userNid, deviceId }: DeviceKey): Inbox {
    const key = `${userNid} ${deviceId}`
    const known = inboxes.get(key)
    if (known) return known
    const inbox: Inbox = {
      oldest: Infinity,
      newest: 0,
      acknowledged: 0,
      uncounted: 0,
      known: undefined,
      isKnown: false,
    }
    inboxes.set(key, inbox)
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

  async function readRows(inbox: Inbox, device: DeviceKey, after: number, upTo: number): Promise<Mail> {
    if (!inbox.isKnown) {
      inbox.known ??= getToKnow(inbox, device)
      await inbox.known
    }
    inbox.acknowledged = Math.max(inbox.acknowledged, after)
    if (inbox.oldest <= after) await remove(inbox, device, after)
    if (inbox.newest <= after) return { upTo, messages: noMessages }
    const rows = await toDeviceBetween(db, device, after, upTo, MAX_TO_DEVICE_PER_SYNC + 1)
    const given = wholeCalls(rows)
    return {
      upTo: given.length < rows.length ? given.at(-1)!.position : upTo,
      messages: () => given.filter(({ position }) => position > inbox.acknowledged),
    }
  }

  return {
    read(device, after, upTo) {
      const inbox = inboxOf(device)
      if (!inbox.isKnown || inbox.oldest !== Infinity) return readRows(inbox, device, after, upTo)
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
          await ledger.append((tx) => trimToDevice(tx, device, MAX_TO_DEVICE_WAITING))
        }),
      )
    },
  }
}

const noMessages = (): readonly ToDeviceRow[] => []

/** As many messages as fit into an answer. A call's two messages to one device share a position and stay together. */
function wholeCalls(rows: readonly ToDeviceRow[]): readonly ToDeviceRow[] {
  if (rows.length <= MAX_TO_DEVICE_PER_SYNC) return rows
  const next = rows[MAX_TO_DEVICE_PER_SYNC]!.position
  return rows.slice(0, MAX_TO_DEVICE_PER_SYNC).filter(({ position }) => position < next)
}

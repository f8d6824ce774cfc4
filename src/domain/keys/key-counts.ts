import { RoughCache } from '../../core/cache.ts'
import type { Reader } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import { perTick } from '../../store/db/per-tick.ts'
import { countKeys, type KeyCountRow } from '../../store/keys/one-time-keys.ts'
import type { Notifier } from '../sync/notifier.ts'

/** What every sync tells a device about its own keys. */
export interface KeyCounts {
  /** By algorithm. */
  readonly oneTime: ReadonlyMap<string, number>
  /** Algorithms. */
  readonly unusedFallback: readonly string[]
  /** `oneTime` as JSON, because every sync repeats it. */
  readonly oneTimeJson: string
  readonly unusedFallbackJson: string
}

interface Device {
  readonly userNid: number
  readonly deviceId: string
}

/** The key counts of active devices: they are read once, and again after a change. */
export interface DeviceKeyCounts {
  of(device: Device): KeyCounts | Promise<KeyCounts>
  /** Keys of a device were claimed, in the ledger's entry at `position`. Its sync must tell it. */
  fell(device: Device, position: number): void
  /** The device has uploaded keys. The answer to the upload holds the new counts. */
  rose(device: Device): void
  /** Whether keys of the device were claimed after a ledger position, as far as this process has seen. */
  fellSince(device: Device, position: number): boolean
}

/** Clients read a missing algorithm as "no change", so the usual one is always named. */
const USUAL_ALGORITHM = 'signed_curve25519'

export function createDeviceKeyCounts(deps: {
  readonly db: Reader
  readonly ledger: Ledger
  readonly notifier: Notifier
  readonly maxDevices: number
}): DeviceKeyCounts {
  const { db, notifier } = deps
  const counts = new RoughCache<string, KeyCounts>(deps.maxDevices)
  const fallen = new RoughCache<string, number>(deps.maxDevices)
  /** A result that was read before a change is not cached. */
  let changes = 0
  deps.ledger.onMissed(() => {
    changes += 1
    counts.clear()
  })

  const read = perTick(async (names: readonly string[]) => {
    const devices = names.map(deviceOf)
    const rows = await countKeys(
      db,
      devices.map(({ userNid }) => userNid),
      devices.map(({ deviceId }) => deviceId),
    )
    const found = new Map(names.map((name) => [name, [] as KeyCountRow[]]))
    for (const row of rows) found.get(nameOf({ userNid: row.user_nid, deviceId: row.device_id }))?.push(row)
    return new Map([...found].map(([name, some]) => [name, toCounts(some)]))
  })

  async function load(name: string): Promise<KeyCounts> {
    const before = changes
    const found = (await read([name])).get(name)!
    if (changes === before) counts.set(name, found)
    return found
  }

  function forget(name: string): void {
    changes += 1
    counts.delete(name)
  }

  return {
    of(device) {
      const name = nameOf(device)
      return counts.get(name) ?? load(name)
    },
    fell(device, position) {
      const name = nameOf(device)
      forget(name)
      fallen.set(name, position)
      notifier.wakeUsers([device.userNid])
    },
    rose(device) {
      forget(nameOf(device))
      notifier.changed(device.userNid)
    },
    fellSince: (device, position) => fallen.size > 0 && (fallen.get(nameOf(device)) ?? 0) > position,
  }
}

function nameOf({ userNid, deviceId }: Device): string {
  return `${userNid} ${deviceId}`
}

function deviceOf(name: string): Device {
  const space = name.indexOf(' ')
  return { userNid: Number(name.slice(0, space)), deviceId: name.slice(space + 1) }
}

function toCounts(rows: readonly KeyCountRow[]): KeyCounts {
  const oneTime = new Map([[USUAL_ALGORITHM, 0]])
  const unusedFallback: string[] = []
  for (const { algorithm, left_over } of rows) {
    if (left_over === null) unusedFallback.push(algorithm)
    else oneTime.set(algorithm, left_over)
  }
  const oneTimeJson = JSON.stringify(Object.fromEntries(oneTime))
  return { oneTime, unusedFallback, oneTimeJson, unusedFallbackJson: JSON.stringify(unusedFallback) }
}

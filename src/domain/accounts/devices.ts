import { ProtocolError } from '../../core/errors.ts'
import {
  type DeviceRow,
  deleteDevices,
  ensureDevice,
  findDevice,
  findUnusedDevices,
  listDevices,
  renameDevice,
} from '../../store/accounts/devices.ts'
import { deleteLoginTokensOf } from '../../store/accounts/login-tokens.ts'
import type { Database, Reader } from '../../store/db/db.ts'
import { deleteGrantsOf } from '../../store/oauth/states.ts'
import { deleteWebSessionsOf } from '../../store/oauth/web-sessions.ts'
import type { Clock } from '../clock.ts'
import type { DeviceLists } from '../keys/device-lists.ts'
import { MAX_DEVICE_NAME_CHARS, MAX_DEVICES_PER_USER } from '../limits.ts'
import { checkText } from '../text.ts'
import { checkDeviceWish, type Issued } from './issue-token.ts'
import type { Sessions } from './sessions.ts'

/** A device as its owner sees it. */
export interface Device {
  readonly device_id: string
  readonly display_name: string | null
  readonly last_seen_ip: string | null
  readonly last_seen_ts: number | null
}

export interface Devices {
  list(userNid: number): Promise<Device[]>
  /** @throws ProtocolError `M_NOT_FOUND` */
  get(userNid: number, deviceId: string): Promise<Device>
  /** After a login made a device: tells the users who share a room with its user, and gives its name to other servers. */
  announce(userNid: number, issued: Pick<Issued, 'deviceId' | 'isNewDevice'>): Promise<void>
  /** Gives a device another name; undefined changes nothing. @throws ProtocolError `M_NOT_FOUND` */
  rename(userNid: number, deviceId: string, name: string | null | undefined): Promise<void>
  /** Makes a device without a login, as application services do. Returns false if it exists. @throws ProtocolError `M_INVALID_PARAM` */
  make(userNid: number, deviceId: string, name: string | null | undefined): Promise<boolean>
  /**
   * Removes devices, their sessions, their keys and the messages that wait for them. Nothing else removes a device. Ignores ids that are
   * no devices.
   */
  remove(userNid: number, deviceIds: readonly string[]): Promise<void>
  /** Removes those of these devices that nobody has used since a moment. Gives them. */
  removeUnused(userNid: number, deviceIds: readonly string[], since: number): Promise<readonly string[]>
  /**
   * Removes all devices, or all but one, and what would still allow a login: login tokens, browsers that are signed in, and grants that no
   * app has used yet.
   */
  removeAll(userNid: number, except?: string): Promise<void>
  /** Removes the devices that were unused for longest, if a user has too many. */
  trim(userNid: number): Promise<void>
}

function toDevice(row: DeviceRow): Device {
  const { device_id, display_name, last_seen_ip, last_seen_at } = row
  return { device_id, display_name, last_seen_ip, last_seen_ts: last_seen_at }
}

function unknownDevice(): ProtocolError {
  return new ProtocolError('M_NOT_FOUND', 'You have no such device.')
}

/** What only reads devices. */
export function createDeviceReader({ db }: { readonly db: Reader }): Pick<Devices, 'list' | 'get'> {
  return {
    list: async (userNid) => (await listDevices(db, userNid)).map(toDevice),
    async get(userNid, deviceId) {
      const row = await findDevice(db, userNid, deviceId)
      if (row === undefined) throw unknownDevice()
      return toDevice(row)
    },
  }
}

export function createDevices(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly sessions: Sessions
  readonly deviceLists: Pick<DeviceLists, 'change'>
}): Devices {
  const { db, clock, sessions, deviceLists } = deps
  const { get, list } = createDeviceReader({ db })

  async function announce(userNid: number, { deviceId, isNewDevice }: Pick<Issued, 'deviceId' | 'isNewDevice'>) {
    if (!isNewDevice) return
    await deviceLists.change(userNid, async () => ({ audience: 'sharing', result: undefined, devices: [deviceId] }))
  }

  async function removeUnused(
    userNid: number,
    deviceIds: readonly string[],
    since: number | undefined,
  ): Promise<readonly string[]> {
    const possible = deviceIds.filter((deviceId) => !deviceId.includes('\0'))
    if (possible.length === 0) return []
    const gone = await deviceLists.change(userNid, async (tx) => {
      const removed = await deleteDevices(tx, userNid, possible, since)
      return { audience: removed.length > 0 ? 'sharing' : 'nobody', result: removed, devices: removed }
    })
    for (const deviceId of possible) sessions.forget(userNid, deviceId)
    return gone
  }

  async function remove(userNid: number, deviceIds: readonly string[]): Promise<void> {
    await removeUnused(userNid, deviceIds, undefined)
  }

  return {
    get,
    announce,
    remove,
    removeUnused,
    list,
    async make(userNid, deviceId, name) {
      if ((await findDevice(db, userNid, deviceId)) !== undefined) return false
      const displayName = name ?? undefined
      checkDeviceWish({ deviceId, displayName })
      const isNewDevice = await db.tx((tx) =>
        ensureDevice(tx, { userNid, deviceId, displayName, createdAt: clock.now() }),
      )
      await announce(userNid, { deviceId, isNewDevice })
      return isNewDevice
    },
    async rename(userNid, deviceId, name) {
      await get(userNid, deviceId)
      if (name === undefined) return
      if (name !== null) checkText('display_name', name, MAX_DEVICE_NAME_CHARS)
      const renamed = await deviceLists.change(userNid, async (tx) => {
        const result = await renameDevice(tx, userNid, deviceId, name)
        return { audience: result ? 'sharing' : 'nobody', result, devices: [deviceId] }
      })
      if (!renamed) throw unknownDevice()
    },
    async removeAll(userNid, except) {
      await db.tx(async (tx) => {
        await deleteLoginTokensOf(tx, userNid)
        await deleteWebSessionsOf(tx, userNid)
        await deleteGrantsOf(tx, userNid)
      })
      const devices = await listDevices(db, userNid)
      const ids = devices.map(({ device_id }) => device_id)
      await remove(
        userNid,
        ids.filter((deviceId) => deviceId !== except),
      )
      // This also forgets requesters without a device, such as users of application services.
      if (except === undefined) sessions.forget(userNid)
    },
    trim: async (userNid) => remove(userNid, await findUnusedDevices(db, userNid, MAX_DEVICES_PER_USER)),
  }
}

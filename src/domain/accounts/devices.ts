import { ProtocolError } from '../../core/errors.ts'
import type { Database } from '../../store/db.ts'
import { type DeviceRow, deleteDevices, findDevice, listDevices, renameDevice } from '../../store/devices.ts'
import { MAX_DEVICE_NAME_CHARS } from '../limits.ts'
import { checkText } from '../text.ts'
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
  /** Gives a device another name; undefined changes nothing. @throws ProtocolError `M_NOT_FOUND` */
  rename(userNid: number, deviceId: string, name: string | null | undefined): Promise<void>
  /** Removes devices and ends their sessions. Ids that are no devices are passed over. */
  remove(userNid: number, deviceIds: readonly string[]): Promise<void>
}

function toDevice(row: DeviceRow): Device {
  const { device_id, display_name, last_seen_ip, last_seen_at } = row
  return { device_id, display_name, last_seen_ip, last_seen_ts: last_seen_at }
}

function unknownDevice(): ProtocolError {
  return new ProtocolError('M_NOT_FOUND', 'You have no such device.')
}

export function createDevices(deps: { readonly db: Database; readonly sessions: Sessions }): Devices {
  const { db, sessions } = deps

  async function get(userNid: number, deviceId: string): Promise<Device> {
    const row = await findDevice(db, userNid, deviceId)
    if (row === undefined) throw unknownDevice()
    return toDevice(row)
  }

  return {
    get,
    list: async (userNid) => (await listDevices(db, userNid)).map(toDevice),
    async rename(userNid, deviceId, name) {
      if (name === undefined) {
        await get(userNid, deviceId)
        return
      }
      if (name !== null) checkText('display_name', name, MAX_DEVICE_NAME_CHARS)
      if (!(await db.tx((tx) => renameDevice(tx, userNid, deviceId, name)))) throw unknownDevice()
    },
    async remove(userNid, deviceIds) {
      const possible = deviceIds.filter((deviceId) => !deviceId.includes('\0'))
      await db.tx((tx) => deleteDevices(tx, userNid, possible))
      for (const deviceId of possible) sessions.forget(userNid, deviceId)
    },
  }
}

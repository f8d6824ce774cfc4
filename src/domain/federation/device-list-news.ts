import { type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { encodeCanonical } from '../../core/signing/canonical-json.ts'
import { listDevices } from '../../store/accounts/devices.ts'
import type { Reader, Tx } from '../../store/db/db.ts'
import { keepNewestEdus } from '../../store/federation/federation-edus.ts'
import type { Clock } from '../clock.ts'
import type { DeviceListChange, RemoteDeviceLists } from '../keys/device-lists.ts'
import { readLocalKeys } from '../keys/local-keys.ts'
import { serversToTell } from '../rooms/room/destinations.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Users } from '../users.ts'
import type { Outgoing } from './outgoing.ts'

/**
 * Sends changes of our users' device lists to other servers until they have them (server-server API, `m.device_list_update`).
 *
 * If several changes wait for a server, only the last is sent. It names the change before it, so a server that did not get that one knows
 * that it must fetch the whole list.
 */
export function createDeviceListNews(deps: {
  readonly serverName: ServerName
  readonly db: Reader
  readonly clock: Clock
  readonly users: Users
  readonly registry: RoomRegistry
  readonly outgoing: Pick<Outgoing, 'kept' | 'reaches'>
}): RemoteDeviceLists {
  const { serverName, db, clock, users, registry, outgoing } = deps

  async function edusAbout(tx: Tx, userNid: number, userId: UserId, change: DeviceListChange): Promise<JsonObject[]> {
    const keys = await readLocalKeys(tx, serverName, new Map([[userId, []]]), undefined)
    const all = keys.devices.get(userId) ?? new Map<string, string>()
    const { devices = [...all.keys()].slice(0, 1), position, before } = change
    // If the change is not in exactly one device, the other server must fetch the whole list.
    const isOne = change.devices?.length === 1 && before > 0
    const list = { user_id: userId, stream_id: position, prev_id: isOne ? [before] : [] }
    // A device without keys is sent with its name alone.
    const keyless = new Map<string, JsonObject>()
    if (devices.some((deviceId) => !all.has(deviceId))) {
      for (const { device_id, display_name } of await listDevices(tx, userNid)) {
        keyless.set(device_id, display_name === null ? {} : { device_display_name: display_name })
      }
    }
    const updates = devices.map((deviceId) => {
      const json = all.get(deviceId)
      const about = json === undefined ? (keyless.get(deviceId) ?? { deleted: true }) : aboutKeys(json)
      return { edu_type: 'm.device_list_update', content: { ...list, device_id: deviceId, ...about } }
    })
    const crossSigning = (['master', 'self_signing'] as const).flatMap((usage) => {
      const key = keys[usage].get(userId)
      return key === undefined ? [] : [[`${usage}_key`, JSON.parse(key)] as const]
    })
    if (crossSigning.length === 0) return updates
    const content = { user_id: userId, ...Object.fromEntries(crossSigning) }
    return [...updates, { edu_type: 'm.signing_key_update', content }]
  }

  return {
    async serversIn(roomNids) {
      const servers = new Set<ServerName>()
      for (const roomNid of roomNids) {
        const room = await registry.getByNid(roomNid)
        if (!room.isShared) continue
        for (const server of await serversToTell(db, room)) servers.add(server)
      }
      return [...servers].filter(outgoing.reaches)
    },
    async queue(tx, userNid, servers, change) {
      const userId = (await users.idsOf([userNid])).get(userNid)
      if (userId === undefined || serverOf(userId) !== serverName) return
      const jsons = (await edusAbout(tx, userNid, userId, change)).map((edu) => encodeCanonical(edu))
      await keepNewestEdus(tx, { servers, aboutNid: userNid, jsons, now: clock.now() })
    },
    queued: (servers) => outgoing.kept(servers),
  }
}

function aboutKeys(json: string): JsonObject {
  const { unsigned, ...keys } = JSON.parse(json) as JsonObject
  return { keys, ...(unsigned as JsonObject) }
}

import { type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import { encodeCanonical, type JsonObject } from '../../core/json.ts'
import type { Reader, Tx } from '../../store/db.ts'
import { keepNewestEdus } from '../../store/federation-edus.ts'
import type { Clock } from '../clock.ts'
import type { RemoteDeviceLists } from '../keys/device-lists.ts'
import { readLocalKeys } from '../keys/local-keys.ts'
import type { RoomRegistry } from '../rooms/registry.ts'
import { serversToTell } from '../rooms/servers-to-tell.ts'
import type { Users } from '../users.ts'
import type { Outgoing } from './outgoing.ts'

/**
 * Tells other servers that devices of our users changed, until they have taken it (server-server API, `m.device_list_update`).
 *
 * Word of several changes that waits for a server is one word of the last. So it names no update before it, by which the other server
 * knows that it has to ask for the whole list.
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

  async function edusAbout(tx: Tx, userId: UserId, position: number): Promise<JsonObject[]> {
    const keys = await readLocalKeys(tx, serverName, new Map([[userId, []]]), undefined)
    const [[deviceId, json] = []] = keys.devices.get(userId) ?? []
    const { unsigned, ...device } = json === undefined ? {} : (JSON.parse(json) as JsonObject)
    const about = json === undefined ? { deleted: true } : { keys: device, ...(unsigned as JsonObject) }
    const list = { user_id: userId, device_id: deviceId ?? 'none', stream_id: position, prev_id: [], ...about }
    const crossSigning = (['master', 'self_signing'] as const).flatMap((usage) => {
      const key = keys[usage].get(userId)
      return key === undefined ? [] : [[`${usage}_key`, JSON.parse(key)] as const]
    })
    const update = { edu_type: 'm.device_list_update', content: list }
    if (crossSigning.length === 0) return [update]
    const content = { user_id: userId, ...Object.fromEntries(crossSigning) }
    return [update, { edu_type: 'm.signing_key_update', content }]
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
    async tell(tx, userNid, servers, position) {
      const userId = (await users.idsOf([userNid])).get(userNid)
      if (userId === undefined || serverOf(userId) !== serverName) return
      const jsons = (await edusAbout(tx, userId, position)).map((edu) => encodeCanonical(edu))
      await keepNewestEdus(tx, { servers, aboutNid: userNid, jsons, now: clock.now() })
    },
    told: (servers) => outgoing.kept(servers),
  }
}

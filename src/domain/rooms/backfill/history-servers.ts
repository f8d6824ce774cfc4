import { readPowerLevels } from '../../../core/auth/power-levels.ts'
import { isUserId, type ServerName, serverOf } from '../../../core/ids.ts'
import { isObject } from '../../../core/json.ts'
import { compareIntegers } from '../../../core/large-integers.ts'
import type { Reader } from '../../../store/db/db.ts'
import { getJoinedUsers } from '../../../store/rooms/rooms.ts'
import { MAX_HISTORY_SERVERS } from '../../limits.ts'
import { makerOf } from '../remote/resident-servers.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'

/**
 * Servers in a room that may have the events before an event, the likeliest first. The sender's server had its previous events; servers of
 * the creator and of powerful members have been there for long; large servers are well maintained.
 */
export async function serversWithHistory(
  db: Reader,
  room: Room,
  before: RoomEvent,
  ownServer: ServerName,
): Promise<ServerName[]> {
  const joined = await room.servers.of(() => getJoinedUsers(db, room.nid))
  const [create, levels] = await Promise.all([
    room.stateEvent('m.room.create', ''),
    room.stateEvent('m.room.power_levels', ''),
  ])
  const { users } = levels?.content ?? {}
  const { levelOf } = readPowerLevels(room.version, levels?.content, create?.pdu)
  const named = (isObject(users) ? Object.keys(users) : [])
    .filter(isUserId)
    .sort((a, b) => compareIntegers(levelOf(b), levelOf(a)))
  const likely = [
    serverOf(before.sender),
    ...makerOf(room.id),
    ...(create ? [serverOf(create.sender)] : []),
    ...named.map((userId) => serverOf(userId)),
    ...[...joined].sort(([, a], [, b]) => b.size - a.size).map(([server]) => server),
  ]
  const servers = new Set(likely.filter((server) => server !== ownServer && joined.has(server)))
  return [...servers].slice(0, MAX_HISTORY_SERVERS)
}

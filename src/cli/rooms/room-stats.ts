import type { Config } from '../../config/schema.ts'
import type { Reader } from '../../store/db/db.ts'
import { getLogSize } from '../../store/rooms/room-report.ts'
import { commonTypes, countRoom, serversOfRoom } from '../../store/rooms/room-statistics.ts'
import { countMembers, getRooms } from '../../store/rooms/rooms.ts'
import { withAdministration } from '../administration.ts'
import { EXIT, type Host } from '../command.ts'
import { entry } from '../report-entry.ts'
import { minute, table } from '../table.ts'

const SHOWN = 10

/** How large one room is, and how much goes on in it. */
export async function roomStatistics(reader: Reader, roomNid: number, isForPrograms: boolean): Promise<string> {
  const [room] = await getRooms(reader, [roomNid])
  const [counts, types, servers, members, state] = await Promise.all([
    countRoom(reader, roomNid, Date.now()),
    commonTypes(reader, roomNid, SHOWN),
    serversOfRoom(reader, roomNid, SHOWN),
    countMembers(reader, [roomNid]),
    getLogSize(reader, roomNid),
  ])
  const byMembership = Object.fromEntries(members.map(({ membership, count }) => [membership, count]))
  const serverCount = servers[0]?.total ?? 0
  if (isForPrograms) {
    const shown = { ...counts, types, members: byMembership, servers: serverCount, largest_servers: servers, state }
    return JSON.stringify({ room_id: room!.room_id, ...shown }, undefined, 2)
  }
  return [
    room!.room_id,
    line('events', `${counts.events}, of these ${counts.state_events} of state; ${megabytes(counts.bytes)}`),
    line('lately', `${counts.last_day} in a day, ${counts.last_month} in thirty days`),
    line('from, to', `${minute(counts.first_ts)} - ${minute(counts.last_ts)}`),
    line('types', types.map(({ type, count }) => `${type} ${count}`).join(', ')),
    line(
      'members',
      Object.entries(byMembership)
        .map(([membership, count]) => `${membership} ${count}`)
        .join(', '),
    ),
    line('servers', `${serverCount}: ${servers.map(({ server, members: count }) => `${server} ${count}`).join(', ')}`),
    line('state', `${state.changes} changes, ${state.branches} branches, ${state.checkpoints} checkpoints`),
  ].join('\n')
}

/** The rooms that take most room in the database. */
export async function largestRooms(host: Host, config: Config, isForPrograms: boolean): Promise<number> {
  const { rooms }: { rooms: { room_id: string; estimated_size: number }[] } = await withAdministration(
    host,
    config,
    (api) => api.call('GET', '/_synapse/admin/v1/statistics/database/rooms'),
  )
  const rows = rooms.map(({ room_id, estimated_size }) => [room_id, megabytes(estimated_size)])
  host.print(isForPrograms ? JSON.stringify(rooms, undefined, 2) : table([['room', 'about'], ...rows]))
  return EXIT.ok
}

const line = (name: string, text: string): string => entry(name, [text])
const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`

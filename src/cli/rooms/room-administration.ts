import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../../config/schema.ts'
import { type Administration, userNamed, withAdministration } from '../administration.ts'
import { EXIT, type Host, UsageError } from '../command.ts'
import { table } from '../table.ts'

export interface RoomAdministrationOptions {
  readonly search?: string | undefined
  readonly json?: boolean | undefined
  readonly block?: boolean | undefined
  readonly 'keep-history'?: boolean | undefined
  readonly 'new-room-user'?: string | undefined
  readonly message?: string | undefined
  readonly before?: string | undefined
  readonly local?: boolean | undefined
}

const ASK_EVERY_MS = 250

interface ListedRoom {
  readonly room_id: string
  readonly name: string | null
  readonly canonical_alias: string | null
  readonly joined_members: number
  readonly joined_local_members: number
  readonly version: string
}

export async function listRooms(
  host: Host,
  config: Config,
  { search, json }: RoomAdministrationOptions,
): Promise<number> {
  const query = new URLSearchParams({ limit: '1000', ...(search && { search_term: search }) })
  const rooms = await withAdministration(host, config, async (api) => {
    const found: ListedRoom[] = []
    for (let from: number | undefined = 0; from !== undefined; ) {
      query.set('from', String(from))
      const page: { rooms: ListedRoom[]; next_batch?: number } = await api.call(
        'GET',
        `/_synapse/admin/v1/rooms?${query}`,
      )
      found.push(...page.rooms)
      from = page.next_batch
    }
    return found
  })
  const rows = rooms.map((room) => [
    room.room_id,
    room.name ?? '-',
    room.canonical_alias ?? '-',
    String(room.joined_members),
    String(room.joined_local_members),
    room.version,
  ])
  const heads = ['room', 'name', 'alias', 'members', 'of ours', 'version']
  host.print(json ? JSON.stringify(rooms, undefined, 2) : table([heads, ...rows]))
  return EXIT.ok
}

/** Deletes a room and waits for the end. If this is interrupted, the running server, or the next one, finishes the deletion. */
export async function deleteRoom(
  host: Host,
  config: Config,
  room: string,
  options: RoomAdministrationOptions,
): Promise<number> {
  const { 'new-room-user': maker, message } = options
  const body = {
    block: options.block ?? false,
    purge: !options['keep-history'],
    ...(maker === undefined ? {} : { new_room_user_id: userNamed(maker, config) }),
    ...(message === undefined ? {} : { message }),
  }
  return withAdministration(host, config, async (api) => {
    const path = `/_synapse/admin/v2/rooms/${encodeURIComponent(await idOf(api, room))}`
    const { delete_id } = await api.call('DELETE', path, body)
    const status = await ended(api, delete_id)
    if (status.status === 'failed') throw new Error(`${room} was not removed: ${status.error}`)
    const { kicked_users, new_room_id } = status.shutdown_room
    host.print(`${room} is removed: ${kicked_users.length} users were in it, ${status.rows_removed} rows are gone.`)
    if (new_room_id !== null) host.print(`They are now in ${new_room_id}.`)
    return EXIT.ok
  })
}

/** Removes history of a room and waits for the end. If this is interrupted, the running server, or the next one, finishes it. */
export async function purgeHistory(
  host: Host,
  config: Config,
  room: string,
  { before = '', local = false }: RoomAdministrationOptions,
): Promise<number> {
  const ts = Date.parse(before)
  const isEvent = before.startsWith('$')
  if (!isEvent && Number.isNaN(ts)) throw new UsageError('say --before what: an event id, or a time such as 2026-01-31')
  const point = isEvent ? { purge_up_to_event_id: before } : { purge_up_to_ts: ts }
  return withAdministration(host, config, async (api) => {
    const path = `/_synapse/admin/v1/purge_history/${encodeURIComponent(await idOf(api, room))}`
    const { purge_id } = await api.call('POST', path, { ...point, delete_local_events: local })
    for (;;) {
      const { status, error, events_removed } = await api.call(
        'GET',
        `/_synapse/admin/v1/purge_history_status/${purge_id}`,
      )
      if (status === 'failed') throw new Error(`history of ${room} was not removed: ${error}`)
      if (status === 'complete') {
        host.print(`${events_removed} events of ${room} are removed.`)
        return EXIT.ok
      }
      await delay(ASK_EVERY_MS)
    }
  })
}

export async function blockRoom(host: Host, config: Config, room: string, block: boolean): Promise<number> {
  await withAdministration(host, config, async (api) => {
    const path = `/_synapse/admin/v1/rooms/${encodeURIComponent(await idOf(api, room))}/block`
    await api.call('PUT', path, { block })
  })
  host.print(block ? `Nobody of this server joins ${room} any more.` : `${room} may be joined.`)
  return EXIT.ok
}

async function idOf(api: Administration, room: string): Promise<string> {
  if (!room.startsWith('#')) return room
  return (await api.call('GET', `/_matrix/client/v3/directory/room/${encodeURIComponent(room)}`)).room_id
}

async function ended(api: Administration, id: string) {
  for (;;) {
    const status = await api.call('GET', `/_synapse/admin/v2/rooms/delete_status/${id}`)
    if (status.status === 'complete' || status.status === 'failed') return status
    await delay(ASK_EVERY_MS)
  }
}

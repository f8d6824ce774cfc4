import type { ByteBudget } from '../../../core/byte-budget.ts'
import { ProtocolError } from '../../../core/errors.ts'
import { isServerName, type RoomId, type ServerName } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { Peers } from '../../../outbound/peers.ts'
import { getNetworkRooms, getRoomsOfAllNetworks } from '../../../store/appservices/appservice-rooms.ts'
import type { Database } from '../../../store/db/db.ts'
import {
  getPublishedRooms,
  isPublished,
  type PublishedRow,
  publishRoom,
  unpublishRoom,
} from '../../../store/rooms/published-rooms.ts'
import type { Clock } from '../../clock.ts'
import { type DirectoryEntry, describeRoom } from '../room/directory-entry.ts'
import { mustBeMember } from '../room/not-in-room.ts'
import { mustName } from '../room/power.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Viewer } from '../room/viewer.ts'
import type { DirectoryQuery } from './directory-query.ts'
import { listElsewhere } from './remote-directory.ts'

export type DirectoryVisibility = 'public' | 'private'

/** The published rooms of this server (client-server API, "Published room directory"), or of another. */
export interface RoomDirectory {
  /**
   * Largest rooms first. @throws ProtocolError `M_INVALID_PARAM` for a `since` that this server never issued; the errors of other servers
   */
  list(query: DirectoryQuery): Promise<JsonObject>
  /** @throws ProtocolError `M_NOT_FOUND` */
  visibilityOf(roomId: RoomId): Promise<DirectoryVisibility>
  /** Allowed for users who may set the room's canonical alias. @throws ProtocolError `M_NOT_FOUND`, `M_FORBIDDEN` */
  setVisibility(by: Viewer, roomId: RoomId, visibility: DirectoryVisibility): Promise<void>
  publish(roomNid: number): Promise<void>
  /** A state event of a room was redacted. That changes the room's entry, although the state is the same. */
  redescribe(roomNid: number): void
}

export interface DirectoryParts {
  readonly serverName: ServerName
  readonly db: Database
  readonly registry: RoomRegistry
  readonly clock: Clock
  readonly peers: Pick<Peers, 'query' | 'post'>
  readonly budget: ByteBudget
}

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 500
/** Bytes of an entry with short texts. */
const ENTRY_BYTES = 900
/** How many rooms are loaded at once to make their entries. */
const WIDTH = 16

export function createRoomDirectory({ serverName, db, registry, clock, peers, budget }: DirectoryParts): RoomDirectory {
  // The search text is the shown text in lower case, so it grows with it.
  const entries = budget.part<number, DirectoryEntry>({ bytesOf: ({ text }) => ENTRY_BYTES + 4 * text.length })

  /** An entry shows only state, so it holds until the state changes or is redacted. */
  async function entryOf(row: PublishedRow): Promise<DirectoryEntry> {
    const known = entries.get(row.room_nid)
    if (known && known.chain === row.state_chain && known.seq === row.state_seq) return known
    const entry = await describeRoom(await registry.getByNid(row.room_nid))
    entries.set(row.room_nid, entry)
    return entry
  }

  /** A network's name is its service and, after a bar, the network's own id. */
  function rowsFor({ network, allNetworks }: DirectoryQuery): Promise<PublishedRow[]> {
    if (allNetworks) return getRoomsOfAllNetworks(db)
    if (network === undefined || network === '') return getPublishedRooms(db)
    const [appserviceId = '', ...rest] = network.split('|')
    return getNetworkRooms(db, { appserviceId, networkId: rest.join('|') })
  }

  async function all(rows: readonly PublishedRow[]): Promise<DirectoryEntry[]> {
    const described: DirectoryEntry[] = []
    for (let start = 0; start < rows.length; start += WIDTH) {
      described.push(...(await Promise.all(rows.slice(start, start + WIDTH).map(entryOf))))
    }
    return described.filter(({ joined }) => joined > 0).sort(compare)
  }

  return {
    async list(query) {
      if (query.server !== undefined && query.server !== '' && query.server !== serverName) {
        if (!isServerName(query.server)) throw new ProtocolError('M_INVALID_PARAM', '`server` is not a server name.')
        return listElsewhere(peers, query.server, query)
      }
      const published = await all(await rowsFor(query))
      return pageOf(published.filter(matcher(query)), published.length, query)
    },
    async visibilityOf(roomId) {
      const room = await registry.get(roomId)
      return room && (await isPublished(db, room.nid)) ? 'public' : 'private'
    },
    async setVisibility(by, roomId, visibility) {
      const room = mustBeMember(await registry.get(roomId), by)
      await mustName(room, by)
      await db.tx((tx) =>
        visibility === 'public' ? publishRoom(tx, room.nid, clock.now()) : unpublishRoom(tx, room.nid),
      )
    },
    publish: (roomNid) => db.tx((tx) => publishRoom(tx, roomNid, clock.now())),
    redescribe: (roomNid) => void entries.delete(roomNid),
  }
}

type Place = Pick<DirectoryEntry, 'joined' | 'roomNid'>

function compare(left: Place, right: Place): number {
  return right.joined - left.joined || left.roomNid - right.roomNid
}

function matcher({ term = '', types }: DirectoryQuery): (entry: DirectoryEntry) => boolean {
  const sought = term.toLowerCase()
  return (entry) => entry.text.includes(sought) && (types === undefined || types.includes(entry.type ?? null))
}

/** A place in the list, and whether to go on after it or back before it. */
const TOKEN = /^([np])(\d{1,15})_(\d{1,15})$/

function tokenFor(direction: 'n' | 'p', { joined, roomNid }: Place): string {
  return `${direction}${joined}_${roomNid}`
}

function pageOf(found: readonly DirectoryEntry[], total: number, { since, limit }: DirectoryQuery): JsonObject {
  const size = Math.min(limit || DEFAULT_LIMIT, MAX_LIMIT)
  const start = since === undefined ? 0 : startAt(found, since, size)
  const page = found.slice(start, start + size)
  const first = page[0]
  const last = page.at(-1)
  return {
    chunk: page.map(({ json }) => json),
    total_room_count_estimate: total,
    ...(last && start + size < found.length ? { next_batch: tokenFor('n', last) } : {}),
    ...(first && start > 0 ? { prev_batch: tokenFor('p', first) } : {}),
  }
}

function startAt(found: readonly DirectoryEntry[], since: string, size: number): number {
  const match = TOKEN.exec(since)
  if (!match) throw new ProtocolError('M_INVALID_PARAM', '`since` is no token of this list.')
  const place = { joined: Number(match[2]), roomNid: Number(match[3]) }
  const isBehind =
    match[1] === 'n' ? (entry: Place) => compare(entry, place) > 0 : (entry: Place) => compare(entry, place) >= 0
  const index = found.findIndex(isBehind)
  const at = index === -1 ? found.length : index
  return match[1] === 'n' ? at : Math.max(0, at - size)
}

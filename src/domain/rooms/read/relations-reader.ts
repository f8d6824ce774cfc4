import { ProtocolError } from '../../../core/errors.ts'
import type { EventId, RoomId } from '../../../core/ids.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import type { Reader } from '../../../store/db/db.ts'
import {
  getRelations,
  getRelationsRecursively,
  getThreads,
  type RelatedRow,
  type RelationsQuery,
} from '../../../store/events/relations.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Clock } from '../../clock.ts'
import { MAX_EVENT_PAGE_BYTES } from '../../limits/answers.ts'
import {
  MAX_RELATION_DEPTH,
  MAX_RELATIONS_PER_PAGE,
  MAX_RELATIONS_SEARCHED,
  MAX_THREADS_PER_PAGE,
  RELATIONS_PER_PAGE,
  THREADS_PER_PAGE,
} from '../../limits/relations.ts'
import { loadReferences } from '../room/client-event.ts'
import type { EventCache } from '../room/event-cache.ts'
import { encodePosition } from '../room/position-token.ts'
import type { Room } from '../room/room.ts'
import type { RoomAccess } from '../room/room-access.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { BundleAggregations } from './bundles.ts'
import { readingOf, writeEventList } from './event-lists.ts'
import { type IgnoredUsers, isIgnored, withoutContent } from './ignored-users.ts'
import type { Positions } from './positions.ts'
import { BEGINNING, type Direction } from './timeline.ts'

export interface RelationsWish {
  readonly relType: string | undefined
  readonly eventType: string | undefined
  readonly direction: Direction
  readonly from: string | undefined
  readonly to: string | undefined
  readonly limit: number | undefined
  /** Whether events that relate through others count too. */
  readonly recurse: boolean
}

export interface ThreadsWish {
  /** Only threads in which the user sent the root or a reply. */
  readonly participated: boolean
  readonly from: string | undefined
  readonly limit: number | undefined
}

/** Events by how they relate to others, as complete JSON bodies. Source: client-server API, "Relationships API", "Threading". */
export interface RelationsReader {
  /** @throws ProtocolError `M_NOT_FOUND` for an event that the user cannot see, `M_INVALID_PARAM` for a text that is no token */
  relations(by: Requester, roomId: RoomId, eventId: EventId, wish: RelationsWish): Promise<JsonBytes>
  /** @throws ProtocolError `M_FORBIDDEN` for a room that the user cannot read, `M_INVALID_PARAM` for a text that is no token */
  threads(by: Requester, roomId: RoomId, wish: ThreadsWish): Promise<JsonBytes>
}

export interface RelationsReaderParts {
  readonly db: Reader
  readonly events: EventCache
  readonly access: RoomAccess
  readonly ignoredUsers: Pick<IgnoredUsers, 'of'>
  readonly positions: Positions
  readonly clock: Clock
  readonly bundle: BundleAggregations
}

/** Events that are read at once: long ones would fill the memory. */
const READ_AT_ONCE = 64

export function createRelationsReader(parts: RelationsReaderParts): RelationsReader {
  const { db, events, access, positions, clock, bundle } = parts

  /** Writes a list of events with what is bundled with them, as the member `chunk`. */
  async function writeChunk(by: Requester, room: Room, chunk: readonly RoomEvent[], upTo: number): Promise<JsonBytes> {
    const reading = readingOf(by, room.id, clock)
    const [relations, membershipAt] = await Promise.all([
      bundle({ viewer: by, upTo }, room, chunk),
      access.membershipsAt(by, room, chunk),
      loadReferences(events, chunk),
    ])
    const out = new JsonBytes().text('{').key('chunk', true)
    writeEventList(out, chunk, { ...reading, membershipAt, relations })
    return out
  }

  /** The events of the first rows, as many as fit on a page, and those of them that the user may see. */
  async function pageOf(by: Requester, room: Room, rows: readonly RelatedRow[]) {
    const read: RoomEvent[] = []
    let bytes = 0
    let taken = 0
    while (taken < rows.length && bytes < MAX_EVENT_PAGE_BYTES) {
      const nids = rows.slice(taken, taken + READ_AT_ONCE).map(({ child_nid }) => child_nid)
      const loaded = await events.load(nids)
      for (const nid of nids) {
        const event = loaded.get(nid)
        if (read.length > 0 && bytes + (event?.json.length ?? 0) > MAX_EVENT_PAGE_BYTES) bytes = MAX_EVENT_PAGE_BYTES
        if (bytes >= MAX_EVENT_PAGE_BYTES) break
        taken++
        if (!event) continue
        read.push(event)
        bytes += event.json.length
      }
    }
    return { page: rows.slice(0, taken), chunk: await access.visibleTo(by, room, read) }
  }

  function read(query: RelationsQuery, recurse: boolean): Promise<RelatedRow[]> {
    if (!recurse) return getRelations(db, query)
    return getRelationsRecursively(db, query, { depth: MAX_RELATION_DEPTH, most: MAX_RELATIONS_SEARCHED })
  }

  return {
    async relations(by, roomId, eventId, wish) {
      const seen = await access.find(by, roomId, eventId)
      if (!seen) throw new ProtocolError('M_NOT_FOUND', 'There is no such event in this room for you to see.')
      const { room, upTo } = seen
      const { direction, recurse, relType, eventType } = wish
      const [from, to] = await Promise.all(
        [wish.from, wish.to].map((token) => (token === undefined ? undefined : positions.positionOf(token, room))),
      )
      const [after, end] = direction === 'b' ? [to, from] : [from, to]
      const limit = Math.min(wish.limit ?? RELATIONS_PER_PAGE, MAX_RELATIONS_PER_PAGE)
      const rows = await read(
        {
          ...{ roomNid: room.nid, targetId: eventId, relType, eventType, direction, limit: limit + 1 },
          ...{ after: after ?? BEGINNING, upTo: Math.min(end ?? upTo, upTo) },
        },
        recurse,
      )
      const { page, chunk } = await pageOf(by, room, rows.slice(0, limit))
      const out = await writeChunk(by, room, chunk, upTo)
      const last = page.at(-1)
      if (rows.length > page.length && last) {
        out.key('next_batch').value(encodePosition(direction === 'b' ? last.pos - 1 : last.pos))
      }
      if (wish.from !== undefined) out.key('prev_batch').value(wish.from)
      if (recurse) out.key('recursion_depth').value(MAX_RELATION_DEPTH)
      return out.text('}')
    },

    async threads(by, roomId, { participated, from, limit = THREADS_PER_PAGE }) {
      const { room, upTo, departure } = await access.mustReadTimeline(by, roomId)
      const begin = from === undefined ? upTo : await positions.positionOf(from, room)
      const size = Math.min(limit, MAX_THREADS_PER_PAGE)
      const rows = await getThreads(db, room.nid, {
        ...{ upTo: Math.min(begin, upTo), limit: size + 1 },
        seesUpTo: departure && upTo,
        by: participated ? by : undefined,
      })
      const page = rows.slice(0, size)
      const roots = await events.loadByIds(page.map(({ root_id }) => root_id))
      const known = page
        .flatMap(({ root_id }) => roots.get(root_id) ?? [])
        .filter(({ roomNid }) => roomNid === room.nid)
      const ignored = await parts.ignoredUsers.of(by.userNid)
      const shown = known.map((root) => (ignored && isIgnored(root, ignored) ? withoutContent(room, root) : root))
      const out = await writeChunk(by, room, await access.visibleTo(by, room, shown), upTo)
      const last = page.at(-1)
      if (rows.length > size && last) out.key('next_batch').value(encodePosition(last.latest_pos - 1))
      return out.text('}')
    },
  }
}

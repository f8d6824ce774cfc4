import { relationOf } from '../../../core/event/relation.ts'
import { groupBy } from '../../../core/group-by.ts'
import type { EventId, UserId } from '../../../core/ids.ts'
import type { Reader } from '../../../store/db/db.ts'
import {
  type Aggregated,
  type AggregatedRow,
  firstRepliers,
  getAggregations,
  threadsRepliedIn,
} from '../../../store/events/relations.ts'
import { MAX_BUNDLED_REFERENCES, MAX_REPLIES_READ } from '../../limits/relations.ts'
import type { EventCache } from '../room/event-cache.ts'
import { Repliers } from '../room/repliers.ts'
import type { Room } from '../room/room.ts'
import { type Aggregates, nameOf, type RoomEvent } from '../room/room-event.ts'

/** Reads what relates to events, as far as aggregations show it. What is the same for all readers is kept with the events. */
export interface AggregationRows {
  /** For a reader who ignores nobody and sees the newest events. */
  shared(room: Room, wanted: readonly RoomEvent[], userId: UserId): Promise<AggregatedRow[]>
  /** For any reader. @param upTo the reader sees no event after this timeline position */
  read(
    room: Room,
    wanted: readonly RoomEvent[],
    reader: { readonly userId: UserId; readonly upTo: number; readonly ignored: readonly string[] },
  ): Promise<AggregatedRow[]>
  /** Learns in which of some threads a user has replied, and gives the ids of their roots, all of which have aggregates. */
  learnRepliers(room: Room, roots: readonly Root[], userId: UserId): Promise<ReadonlySet<EventId>>
}

/** The root of a thread, with what is kept of it. */
export type Root = readonly [RoomEvent, Aggregates]

export function createAggregationRows({
  db,
  events: cache,
}: {
  readonly db: Reader
  readonly events: EventCache
}): AggregationRows {
  const read: AggregationRows['read'] = (room, wanted, { userId, upTo, ignored }) =>
    getAggregations(db, room.nid, wanted.map(aggregatedOf), {
      userId,
      upTo,
      references: MAX_BUNDLED_REFERENCES,
      ignored,
    })

  /** Gives what relates to these events, and keeps it with them. */
  async function shared(room: Room, wanted: readonly RoomEvent[], userId: UserId): Promise<AggregatedRow[]> {
    const unknown = wanted.filter(({ aggregates }) => aggregates === undefined)
    const isUnknown = new Set(unknown)
    const fresh = unknown.length === 0 ? [] : await readAndKeep(room, unknown, userId)
    const asked: Root[] = []
    for (const event of wanted) {
      const { aggregates } = event
      if (isUnknown.has(event)) continue
      // Its relations changed while others were read.
      if (aggregates === undefined) fresh.push(...(await readAndKeep(room, [event], userId)))
      else if (!aggregates.rows.some(isThread)) fresh.push(...aggregates.rows)
      else {
        const hasReplied = aggregates.repliers.has(userId)
        if (hasReplied === undefined) asked.push([event, aggregates])
        else fresh.push(...rowsFor(aggregates, hasReplied))
      }
    }
    if (asked.length === 0) return fresh
    const replied = await learnRepliers(room, asked, userId)
    for (const root of asked) fresh.push(...rowsFor(root[1], replied.has(idOf(root))))
    return fresh
  }

  async function learnRepliers(room: Room, roots: readonly Root[], userId: UserId): Promise<ReadonlySet<EventId>> {
    const isSmall = ([, { rows }]: Root) => (rows.find(isThread)?.replies ?? 0) <= MAX_REPLIES_READ
    const [small, large] = [roots.filter(isSmall), roots.filter((root) => !isSmall(root))]
    const [all, replied] = await Promise.all([
      small.length > 0 ? firstRepliers(db, room.nid, small.map(idOf), MAX_REPLIES_READ) : [],
      large.length > 0 ? threadsRepliedIn(db, room.nid, large.map(idOf), userId) : undefined,
    ])
    const senders = new Map(all.map((thread) => [thread.root_id, thread.senders]))
    for (const root of small) root[1].repliers.noteAll(senders.get(idOf(root)) ?? [])
    for (const root of large) root[1].repliers.note(userId, replied?.has(idOf(root)) === true)
    for (const [event] of roots) cache.grown(event)
    // What is noted of many other readers at the same time may push this out again.
    return new Set(roots.filter(([, { repliers }]) => repliers.has(userId)).map(idOf))
  }

  async function readAndKeep(room: Room, wanted: readonly RoomEvent[], userId: UserId): Promise<AggregatedRow[]> {
    const versions = wanted.map(({ relationsVersion }) => relationsVersion)
    const rows = await read(room, wanted, { userId, upTo: Number.MAX_SAFE_INTEGER, ignored: [] })
    const byTarget = groupBy(rows, ({ target_id }) => target_id)
    wanted.forEach((event, place) => {
      const ofEvent = byTarget.get(nameOf(event)) ?? []
      const aggregates: Aggregates = { rows: ofEvent, repliers: new Repliers() }
      const thread = ofEvent.find(isThread)
      if (thread) aggregates.repliers.note(userId, thread.participated === true)
      event.keepAggregates(aggregates, versions[place]!)
      cache.grown(event)
    })
    return rows
  }

  return { read, shared, learnRepliers }
}

const idOf = ([event]: Root) => nameOf(event)

/** The rows as a reader gets them. */
const rowsFor = ({ rows }: Aggregates, participated: boolean): AggregatedRow[] =>
  rows.map((row) => (isThread(row) ? { ...row, participated } : row))

const isThread = ({ kind }: AggregatedRow): boolean => kind === 'm.thread'

/** A redacted event has no edits, and what is in a thread has no threads. */
function aggregatedOf(event: RoomEvent): Aggregated {
  const editor = event.redactedBy === undefined ? event.sender : ''
  return { id: nameOf(event), editor, type: event.type, mayBeRoot: relationOf(event.content) === undefined }
}

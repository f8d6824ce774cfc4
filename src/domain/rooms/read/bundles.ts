import { relationOf } from '../../../core/event/relation.ts'
import type { Reader } from '../../../store/db/db.ts'
import type { AggregatedRow } from '../../../store/events/relations.ts'
import { MAX_BUNDLED_BYTES } from '../../limits/answers.ts'
import { MAX_REFERENCES_READ_BYTES } from '../../limits/relations.ts'
import { clientEventText, isRendered, loadReferences, type Reading } from '../room/client-event.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { Room } from '../room/room.ts'
import type { RoomAccess } from '../room/room-access.ts'
import { nameOf, type RoomEvent } from '../room/room-event.ts'
import type { Viewer } from '../room/viewer.ts'
import { createAggregationRows } from './aggregation-rows.ts'
import type { IgnoredUsers } from './ignored-users.ts'

/** `unsigned.m.relations` of events, as JSON, by the number of the event. */
export type Bundles = ReadonlyMap<number, string>

/** Who reads, and how events are written for them. */
export interface BundleReader {
  readonly viewer: Viewer
  readonly reading: Reading
  /** The viewer sees no event after this timeline position; undefined if they see all that visibility allows. */
  readonly upTo?: number
}

/**
 * Bundles aggregations of child events with these events (client-server API, "Aggregations of child events"): the newest edit, the thread,
 * the references. One query for all of them, and one more if the newest replies have such aggregations themselves. What is the same for all
 * readers is kept with the events until their relations change. Synchronous where memory holds all that is shown. Undefined if nothing is.
 */
export type BundleAggregations = (
  reader: BundleReader,
  room: Room,
  events: readonly RoomEvent[],
) => Promise<Bundles | undefined> | Bundles | undefined

/** These carry no aggregations. */
const WITHOUT_BUNDLES: ReadonlySet<string> = new Set(['m.replace', 'm.annotation'])

/** What an aggregation shows of each event, its children loaded and visible. */
interface Aggregations {
  edit?: RoomEvent
  thread?: { readonly latest: RoomEvent; readonly replies: number; readonly participated: boolean }
  readonly references: RoomEvent[]
}

export function createBundleAggregations({
  db,
  events: cache,
  access,
  ignoredUsers,
}: {
  readonly db: Reader
  readonly events: EventCache
  readonly access: Pick<RoomAccess, 'visibleTo' | 'seesAtOnce'>
  readonly ignoredUsers: Pick<IgnoredUsers, 'of'>
}): BundleAggregations {
  const related = createAggregationRows({ db, events: cache })

  /** The events of these rows. Where there are too many bytes of them, some are left out. */
  async function childrenIn(rows: readonly AggregatedRow[]): Promise<RoomEvent[]> {
    const nidsOf = (some: readonly AggregatedRow[]) => [...new Set(some.map(({ child_nid }) => child_nid))]
    const isReference = ({ kind }: AggregatedRow) => kind === 'm.reference'
    const shown = await loadUpTo(cache, nidsOf(rows.filter((row) => !isReference(row))), MAX_BUNDLED_BYTES)
    const references = rows.filter(isReference)
    if (references.length === 0) return shown
    return [...shown, ...(await loadUpTo(cache, nidsOf(references), MAX_REFERENCES_READ_BYTES))]
  }

  async function aggregate(
    { viewer, upTo = Number.MAX_SAFE_INTEGER }: BundleReader,
    room: Room,
    wanted: readonly RoomEvent[],
  ): Promise<Map<RoomEvent, Aggregations>> {
    const ignored = await ignoredUsers.of(viewer.userNid)
    const isShared = ignored === undefined && upTo >= room.committed.pos
    let rows = isShared ? await related.shared(room, wanted, viewer.userId) : undefined
    let children = rows && (await childrenIn(rows))
    if (!rows || !children || children.some(({ pos }) => pos > upTo)) {
      rows = await related.read(room, wanted, { userId: viewer.userId, upTo, ignored: ignored ? [...ignored] : [] })
      children = await childrenIn(rows)
    }
    if (rows.length === 0) return new Map()
    const visible = await access.visibleTo(viewer, room, children)
    const shown = new Map(visible.map((child) => [child.nid, child]))
    const byId = new Map(wanted.map((event) => [nameOf(event), event]))
    const found = new Map<RoomEvent, Aggregations>()
    for (const row of rows) {
      const [target, child] = [byId.get(row.target_id), shown.get(row.child_nid)]
      if (target && child) take(found, target, child, row, row.participated === true || target.sender === viewer.userId)
    }
    return found
  }

  /** The same from memory. Undefined where that does not reach, or where it would show too many bytes. */
  function aggregateAtOnce(
    { viewer, upTo = Number.MAX_SAFE_INTEGER }: BundleReader,
    room: Room,
    wanted: readonly RoomEvent[],
  ): Map<RoomEvent, Aggregations> | undefined {
    if (upTo < room.committed.pos) return undefined
    const found = new Map<RoomEvent, Aggregations>()
    const children: RoomEvent[] = []
    let bytes = 0
    for (const target of wanted) {
      const known = target.aggregates
      if (known === undefined) return undefined
      for (const row of known.rows) {
        const child = cache.get(row.child_nid)
        if (child === undefined || child.pos > upTo) return undefined
        if (row.kind !== 'm.reference' && !isRendered(cache, child)) return undefined
        const hasReplied = row.kind === 'm.thread' ? known.repliers.get(viewer.userId) : false
        if (hasReplied === undefined) return undefined
        take(found, target, child, row, hasReplied || target.sender === viewer.userId)
        children.push(child)
        bytes += child.json.length
      }
    }
    return bytes <= MAX_BUNDLED_BYTES && access.seesAtOnce(viewer, room, children) ? found : undefined
  }

  /** Undefined where memory does not reach. */
  function bundleAtOnce(reader: BundleReader, room: Room, wanted: readonly RoomEvent[]): Bundles | undefined {
    const found = aggregateAtOnce(reader, room, wanted)
    if (found === undefined) return undefined
    const latest = latestIn(found)
    const inner = latest.length === 0 ? undefined : aggregateAtOnce(reader, room, latest)
    if (latest.length > 0 && inner === undefined) return undefined
    return writeAll(reader, found, inner)
  }

  async function bundle(reader: BundleReader, room: Room, wanted: readonly RoomEvent[]): Promise<Bundles | undefined> {
    const found = await aggregate(reader, room, wanted)
    if (found.size === 0) return undefined
    const latest = latestIn(found)
    const inner = latest.length === 0 ? undefined : await aggregate(reader, room, latest)
    await loadReferences(cache, [...childrenOf(found), ...(inner ? childrenOf(inner) : [])])
    return writeAll(reader, found, inner)
  }

  return (reader, room, events) => {
    if (!events.some(({ hasRelations }) => hasRelations)) return undefined
    const wanted = events.filter(mayHaveBundle)
    if (wanted.length === 0) return undefined
    const now = bundleAtOnce(reader, room, wanted)
    if (now === undefined) return bundle(reader, room, wanted)
    return now.size === 0 ? undefined : now
  }
}

/** Events until they reach about so many bytes. */
async function loadUpTo(cache: EventCache, nids: readonly number[], maxBytes: number): Promise<RoomEvent[]> {
  const { found, left } = await cache.loadWithin(nids, maxBytes)
  const all = [...found]
  let bytes = 0
  for (const { json } of found) bytes += json.length
  for (let wanted = left; wanted.length > 0 && bytes < maxBytes; ) {
    const part = await cache.loadLarge(wanted, maxBytes - bytes)
    for (const event of part.found) {
      all.push(event)
      bytes += event.json.length
    }
    if (part.found.length === 0) break
    wanted = part.left
  }
  return all
}

function mayHaveBundle(event: RoomEvent): boolean {
  if (!event.hasRelations || event.isState) return false
  return !WITHOUT_BUNDLES.has(relationOf(event.content)?.relType ?? '')
}

function take(
  found: Map<RoomEvent, Aggregations>,
  target: RoomEvent,
  child: RoomEvent,
  { kind, replies }: AggregatedRow,
  participated: boolean,
): void {
  const aggregations = found.get(target) ?? { references: [] }
  found.set(target, aggregations)
  if (kind === 'm.replace') aggregations.edit = child
  else if (kind === 'm.reference') aggregations.references.push(child)
  else aggregations.thread = { latest: child, replies: replies ?? 0, participated }
}

/** The newest replies of threads that may have aggregations themselves. */
const latestIn = (found: ReadonlyMap<RoomEvent, Aggregations>): RoomEvent[] =>
  [...found.values()].flatMap(({ thread }) => thread?.latest ?? []).filter(mayHaveBundle)

function* childrenOf(found: ReadonlyMap<RoomEvent, Aggregations>): Iterable<RoomEvent> {
  for (const { edit, thread } of found.values()) {
    if (edit) yield edit
    if (thread) yield thread.latest
  }
}

function writeAll(
  reader: BundleReader,
  found: ReadonlyMap<RoomEvent, Aggregations>,
  inner: ReadonlyMap<RoomEvent, Aggregations> | undefined,
): Bundles {
  const reading: Reading = { ...reader.reading, membershipAt: undefined, relations: undefined }
  const relations = inner && written(inner, reading)
  return written(found, { ...reading, relations })
}

function written(found: ReadonlyMap<RoomEvent, Aggregations>, reading: Reading): Bundles {
  const bundles = new Map<number, string>()
  for (const [{ nid }, aggregations] of found) bundles.set(nid, writeAggregations(aggregations, reading))
  return bundles
}

function writeAggregations({ edit, thread, references }: Aggregations, reading: Reading): string {
  const parts: string[] = []
  if (edit) parts.push(`"m.replace":${clientEventText(edit, reading)}`)
  if (thread) {
    const { latest, replies, participated } = thread
    const counts = `"count":${replies},"current_user_participated":${participated}`
    parts.push(`"m.thread":{"latest_event":${clientEventText(latest, reading)},${counts}}`)
  }
  if (references.length > 0) {
    const chunk = references.map((event) => ({ event_id: nameOf(event) }))
    parts.push(`"m.reference":${JSON.stringify({ chunk })}`)
  }
  return `{${parts.join(',')}}`
}

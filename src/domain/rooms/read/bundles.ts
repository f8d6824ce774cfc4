import type { Reader } from '../../../store/db/db.ts'
import type { AggregatedRow } from '../../../store/events/relations.ts'
import { MAX_BUNDLED_BYTES } from '../../limits/answers.ts'
import { MAX_REFERENCES_READ_BYTES } from '../../limits/relations.ts'
import { type Bundles, loadReferences } from '../room/client-event.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { Room } from '../room/room.ts'
import type { RoomAccess } from '../room/room-access.ts'
import { nameOf, type RoomEvent } from '../room/room-event.ts'
import type { Viewer } from '../room/viewer.ts'
import { createAggregationRows } from './aggregation-rows.ts'
import {
  bundlesInMemory,
  bundlesOf,
  childrenOf,
  type Drafts,
  hasPart,
  latestIn,
  mayHaveBundle,
  take,
} from './bundle-drafts.ts'
import type { IgnoredUsers } from './ignored-users.ts'

/** Who reads what is bundled. */
export interface BundleReader {
  readonly viewer: Viewer
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
  ): Promise<Drafts> {
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
    const found: Drafts = new Map()
    for (const row of rows) {
      const [target, child] = [byId.get(row.target_id), shown.get(row.child_nid)]
      if (target && child) take(found, target, child, row, row.participated === true || target.sender === viewer.userId)
    }
    return found
  }

  /** Undefined where memory does not reach. */
  function bundleAtOnce(
    { viewer, upTo = Number.MAX_SAFE_INTEGER }: BundleReader,
    room: Room,
    wanted: readonly RoomEvent[],
  ): Bundles | undefined {
    if (upTo < room.committed.pos) return undefined
    const known = bundlesInMemory(cache, wanted, (root) => hasPart(root, viewer.userId))
    if (known === undefined || known.children.some(({ pos }) => pos > upTo)) return undefined
    return access.seesAtOnce(viewer, room, known.children) ? known.bundles : undefined
  }

  async function bundle(reader: BundleReader, room: Room, wanted: readonly RoomEvent[]): Promise<Bundles | undefined> {
    const found = await aggregate(reader, room, wanted)
    if (found.size === 0) return undefined
    const latest = latestIn(found)
    const inner = latest.length === 0 ? undefined : await aggregate(reader, room, latest)
    await loadReferences(cache, [...childrenOf(found), ...(inner ? childrenOf(inner) : [])])
    return bundlesOf(found, inner)
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

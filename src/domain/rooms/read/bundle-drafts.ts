import { relationOf } from '../../../core/event/relation.ts'
import type { EventId, UserId } from '../../../core/ids.ts'
import type { AggregatedRow } from '../../../store/events/relations.ts'
import { MAX_BUNDLED_BYTES } from '../../limits/answers.ts'
import { type Bundle, type BundledThread, type Bundles, isRendered } from '../room/client-event.ts'
import type { EventCache } from '../room/event-cache.ts'
import { nameOf, type RoomEvent } from '../room/room-event.ts'

/** A bundle that is being put together. */
interface Draft extends Bundle {
  edit?: RoomEvent
  thread?: BundledThread & { bundle: Bundle | undefined }
  readonly references: EventId[]
}

export type Drafts = Map<RoomEvent, Draft>

/** These carry no aggregations. */
const WITHOUT_BUNDLES: ReadonlySet<string> = new Set(['m.replace', 'm.annotation'])

export function mayHaveBundle(event: RoomEvent): boolean {
  if (!event.hasRelations || event.isState) return false
  return !WITHOUT_BUNDLES.has(relationOf(event.content)?.relType ?? '')
}

/** Adds what one row shows. @param participated whether the reader has a part in it, if it is a thread */
export function take(
  drafts: Drafts,
  target: RoomEvent,
  child: RoomEvent,
  { kind, replies }: AggregatedRow,
  participated: boolean,
): void {
  const draft = drafts.get(target) ?? { references: [] }
  drafts.set(target, draft)
  if (kind === 'm.replace') draft.edit = child
  else if (kind === 'm.reference') draft.references.push(nameOf(child))
  else draft.thread = { latest: child, bundle: undefined, replies: replies ?? 0, participated }
}

/** The newest replies of threads that may have aggregations themselves. */
export const latestIn = (drafts: Drafts): RoomEvent[] =>
  [...drafts.values()].flatMap(({ thread }) => thread?.latest ?? []).filter(mayHaveBundle)

/** The events that are written with others. */
export function* childrenOf(drafts: Drafts): Iterable<RoomEvent> {
  for (const { edit, thread } of drafts.values()) {
    if (edit) yield edit
    if (thread) yield thread.latest
  }
}

/** @param inner what is bundled with the newest replies */
export function bundlesOf(drafts: Drafts, inner: Drafts | undefined): Bundles {
  const bundles = new Map<number, Bundle>()
  for (const [{ nid }, draft] of drafts) {
    if (draft.thread) draft.thread.bundle = inner?.get(draft.thread.latest)
    bundles.set(nid, draft)
  }
  return bundles
}

/** Whether a user sent the root of a thread, or a reply in it. Undefined where that is not known. */
export function hasPart(root: RoomEvent, userId: UserId): boolean | undefined {
  return root.sender === userId || root.aggregates?.repliers.has(userId)
}

/** Bundles as memory has them, for whoever sees all of the children. */
export interface KnownBundles {
  readonly bundles: Bundles
  readonly children: readonly RoomEvent[]
  /** Bytes of those that are written, not only named. */
  readonly bytes: number
}

/**
 * What memory holds of the aggregations of events. Undefined where that does not reach, or where it would show too many bytes.
 *
 * @param participates whether the reader has a part in the thread of a root; undefined where that is not known
 */
export function bundlesInMemory(
  cache: EventCache,
  wanted: readonly RoomEvent[],
  participates: (root: RoomEvent) => boolean | undefined,
): KnownBundles | undefined {
  const children: RoomEvent[] = []
  let bytes = 0
  function draft(targets: readonly RoomEvent[]): Drafts | undefined {
    const drafts: Drafts = new Map()
    for (const target of targets) {
      if (target.aggregates === undefined) return undefined
      for (const row of target.aggregates.rows) {
        const child = cache.get(row.child_nid)
        if (child === undefined) return undefined
        if (row.kind !== 'm.reference' && !isRendered(cache, child)) return undefined
        const participated = row.kind === 'm.thread' ? participates(target) : false
        if (participated === undefined) return undefined
        take(drafts, target, child, row, participated)
        children.push(child)
        if (row.kind !== 'm.reference') bytes += child.json.length
      }
    }
    return drafts
  }
  const drafts = draft(wanted)
  const inner = drafts && draft(latestIn(drafts))
  if (drafts === undefined || inner === undefined || bytes > MAX_BUNDLED_BYTES) return undefined
  return { bundles: bundlesOf(drafts, inner), children, bytes }
}

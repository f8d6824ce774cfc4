import type { Reader } from '../../../store/db/db.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { Room } from '../room/room.ts'
import type { RoomAccess } from '../room/room-access.ts'
import { nameOf, type RoomEvent } from '../room/room-event.ts'
import type { Viewer } from '../room/viewer.ts'
import { createAggregationRows, type Root } from './aggregation-rows.ts'
import { bundlesInMemory, hasPart, type KnownBundles, mayHaveBundle } from './bundle-drafts.ts'

/** What is bundled with events for many readers, as far as it is the same for them. */
export interface SharedBundles {
  /**
   * What all see who ignore nobody and were in the room when each of these events and children came; of threads, `participated` says nothing.
   * Undefined where memory does not reach, or where some of them may see less.
   */
  forMembers(room: Room, events: readonly RoomEvent[]): KnownBundles | undefined
  /**
   * Those of some threads in which a user has a part. All are named by the numbers of their roots. Synchronous where memory knows it.
   * Undefined where memory lacks a root.
   */
  partsOf(
    viewer: Pick<Viewer, 'userId'>,
    room: Room,
    roots: readonly number[],
  ): ReadonlySet<number> | undefined | Promise<ReadonlySet<number> | undefined>
}

const NO_BUNDLES: KnownBundles = { bundles: new Map(), children: [], bytes: 0 }
const NO_PARTS: ReadonlySet<number> = new Set()

export function createSharedBundles({
  db,
  events: cache,
  access,
}: {
  readonly db: Reader
  readonly events: EventCache
  readonly access: Pick<RoomAccess, 'membersSee'>
}): SharedBundles {
  const { learnRepliers } = createAggregationRows({ db, events: cache })

  /** Those of some roots of which it is not known whether a user has a part in their threads. Undefined where memory lacks one. */
  function unknownOf(
    roots: readonly number[],
    { userId }: Pick<Viewer, 'userId'>,
    parts: Set<number>,
  ): Root[] | undefined {
    const unknown: Root[] = []
    for (const nid of roots) {
      const root = cache.get(nid)
      if (root?.aggregates === undefined) return undefined
      const part = hasPart(root, userId)
      if (part === undefined) unknown.push([root, root.aggregates])
      else if (part) parts.add(nid)
    }
    return unknown
  }

  const partsOf: SharedBundles['partsOf'] = (viewer, room, roots) => {
    if (roots.length === 0) return NO_PARTS
    const parts = new Set<number>()
    const unknown = unknownOf(roots, viewer, parts)
    if (unknown === undefined || unknown.length === 0) return unknown && parts
    return learnRepliers(room, unknown, viewer.userId).then((replied) => {
      for (const [root] of unknown) if (replied.has(nameOf(root))) parts.add(root.nid)
      return parts
    })
  }

  return {
    forMembers(room, events) {
      const wanted = events.filter(mayHaveBundle)
      if (wanted.length === 0) return NO_BUNDLES
      const known = bundlesInMemory(cache, wanted, () => false)
      return known && access.membersSee(room, known.children) ? known : undefined
    },
    partsOf,
  }
}

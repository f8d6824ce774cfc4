import { groupBy } from '../../core/group-by.ts'
import type { Reader } from '../../store/db.ts'
import { getChainParents, getKeyHistory, type KeyChange, type StatePoint } from '../../store/state.ts'
import type { EventCache } from './event-cache.ts'
import type { Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'

/** Reads all that some state keys of a room were ever set to, in every branch; a key that is undefined was never set. */
export async function keyHistories(
  { db, events }: { readonly db: Reader; readonly events: EventCache },
  room: Room,
  keyIds: readonly (number | undefined)[],
): Promise<(keyId: number | undefined) => KeyValues> {
  const known = keyIds.filter((keyId) => keyId !== undefined)
  const changes = known.length === 0 ? [] : await getKeyHistory(db, room.nid, known)
  const isBranched = room.committed.lastChain !== 0
  const [parents, values] = await Promise.all([
    isBranched ? getChainParents(db, room.nid) : new Map<number, StatePoint>(),
    events.load(changes.map(({ event_nid }) => event_nid)),
  ])
  const byKey = groupBy(changes, ({ key_id }) => key_id)
  return (keyId) => new KeyValues((keyId !== undefined && byKey.get(keyId)) || [], values, parents)
}

/** The values that one state key had, by point in the log. */
export class KeyValues {
  readonly #byChain = new Map<number, KeyChange[]>()
  readonly #events: ReadonlyMap<number, RoomEvent>
  readonly #parents: ReadonlyMap<number, StatePoint>
  /** Each value once, in the order of the room's timeline: history that was fetched later comes first. */
  readonly events: readonly RoomEvent[]

  constructor(
    changes: readonly KeyChange[],
    events: ReadonlyMap<number, RoomEvent>,
    parents: ReadonlyMap<number, StatePoint>,
  ) {
    for (const change of changes) {
      const chain = this.#byChain.get(change.chain)
      if (chain) chain.push(change)
      else this.#byChain.set(change.chain, [change])
    }
    this.#events = events
    this.#parents = parents
    this.events = [...new Set(changes.map(({ event_nid }) => event_nid))]
      .flatMap((nid) => events.get(nid) ?? [])
      .sort((a, b) => placeOf(a) - placeOf(b))
  }

  at(point: StatePoint): RoomEvent | undefined {
    for (let at: StatePoint | undefined = point; at; at = this.#parents.get(at.chain)) {
      const { seq } = at
      const change = this.#byChain.get(at.chain)?.findLast((candidate) => candidate.seq <= seq)
      if (change) return this.#events.get(change.event_nid)
    }
    return undefined
  }
}

/** What is known without a place in the timeline lies before all of it. */
export function placeOf({ pos }: RoomEvent): number {
  return Number.isNaN(pos) ? Number.NEGATIVE_INFINITY : pos
}

import { groupBy } from '../../../core/group-by.ts'
import type { Reader } from '../../../store/db/db.ts'
import { getChainParents, getKeyHistory, type KeyChange, type StatePoint } from '../../../store/events/state.ts'
import type { EventCache } from './event-cache.ts'
import type { Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'

/** Reads every value that some state keys of a room ever had, in all branches. A key that is undefined was never set. */
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
  return (keyId) => KeyValues.of((keyId !== undefined && byKey.get(keyId)) || [], values, parents)
}

/** Bytes of a change and of its value, without what the value refers to. */
const CHANGE_BYTES = 176

/** The values that one state key had, by point in the log: the events that set it, or a fact taken from each. */
export class KeyValues<Value extends { readonly nid: number } = RoomEvent> {
  readonly #byChain: ReadonlyMap<number, readonly KeyChange[]>
  readonly #values: ReadonlyMap<number, Value>
  readonly #parents: ReadonlyMap<number, StatePoint>
  /** Each value once, in the order of the room's timeline; backfilled history comes first. */
  readonly events: readonly Value[]

  constructor(
    byChain: ReadonlyMap<number, readonly KeyChange[]>,
    values: readonly Value[],
    parents: ReadonlyMap<number, StatePoint>,
  ) {
    this.#byChain = byChain
    this.#values = new Map(values.map((value) => [value.nid, value]))
    this.#parents = parents
    this.events = values
  }

  static of(
    changes: readonly KeyChange[],
    events: ReadonlyMap<number, RoomEvent>,
    parents: ReadonlyMap<number, StatePoint>,
  ): KeyValues {
    const own = [...new Set(changes.map(({ event_nid }) => event_nid))]
      .flatMap((nid) => events.get(nid) ?? [])
      .sort((a, b) => placeOf(a) - placeOf(b))
    return new KeyValues(
      groupBy(changes, ({ chain }) => chain),
      own,
      parents,
    )
  }

  /** Replaces each event by the fact that is worth keeping. */
  map<Fact extends { readonly nid: number }>(factOf: (value: Value) => Fact): KeyValues<Fact> {
    return new KeyValues(this.#byChain, this.events.map(factOf), this.#parents)
  }

  /** Bytes in memory, without the values themselves. */
  get bytes(): number {
    return (this.events.length + this.#parents.size) * CHANGE_BYTES
  }

  at(point: StatePoint): Value | undefined {
    for (let at: StatePoint | undefined = point; at; at = this.#parents.get(at.chain)) {
      const { seq } = at
      const change = this.#byChain.get(at.chain)?.findLast((candidate) => candidate.seq <= seq)
      if (change) return this.#values.get(change.event_nid)
    }
    return undefined
  }
}

/** An event without a place in the timeline counts as before all of it. */
export function placeOf({ pos }: Pick<RoomEvent, 'pos'>): number {
  return Number.isNaN(pos) ? Number.NEGATIVE_INFINITY : pos
}

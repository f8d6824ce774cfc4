import type { EventId } from '../../src/core/ids.ts'

/** Event ids by `type state_key`. */
export type ForgedState = ReadonlyMap<string, EventId>

/** So many states stand on another's entries before one is copied out: rooms of thousands would take gigabytes. */
const MAX_LAYERS = 50

/** Another state with one entry set. */
class SetState implements ForgedState {
  readonly layers: number
  readonly #before: ForgedState
  readonly #key: string
  readonly #id: EventId

  constructor(before: ForgedState, key: string, id: EventId) {
    this.layers = layersOf(before) + 1
    this.#before = before
    this.#key = key
    this.#id = id
  }

  get(key: string): EventId | undefined {
    return key === this.#key ? this.#id : this.#before.get(key)
  }

  has(key: string): boolean {
    return key === this.#key || this.#before.has(key)
  }

  get size(): number {
    return this.#before.size + (this.#before.has(this.#key) ? 0 : 1)
  }

  copy(): Map<string, EventId> {
    return copyOf(this.#before).set(this.#key, this.#id)
  }

  entries(): MapIterator<[string, EventId]> {
    return this.copy().entries()
  }

  keys(): MapIterator<string> {
    return this.copy().keys()
  }

  values(): MapIterator<EventId> {
    return this.copy().values()
  }

  [Symbol.iterator](): MapIterator<[string, EventId]> {
    return this.entries()
  }

  forEach(visit: (id: EventId, key: string, state: ForgedState) => void): void {
    for (const [key, id] of this.copy()) visit(id, key, this)
  }
}

const layersOf = (state: ForgedState): number => (state instanceof SetState ? state.layers : 0)
const copyOf = (state: ForgedState): Map<string, EventId> => (state instanceof SetState ? state.copy() : new Map(state))

/** A state with one entry more or another; the one before it stays as it is. */
export function withEntry(before: ForgedState, key: string, id: EventId): ForgedState {
  const after = new SetState(before, key, id)
  return after.layers < MAX_LAYERS ? after : after.copy()
}

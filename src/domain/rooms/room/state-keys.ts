import type { StateKeyRow } from '../../../store/events/state.ts'

export interface StateKeyName {
  readonly type: string
  readonly stateKey: string
}

/** Bytes of a pair without its texts, and of a type that has pairs with a non-empty state key. */
const KEY_BYTES = 120
const TYPE_BYTES = 280

/** The room-local numbers of `(type, state_key)` pairs. Numbers are dense from 0 and never change. */
export class StateKeys {
  /** The pairs with an empty `state_key`, which most types have. A map for each type would be most of a small room's memory. */
  readonly #plain = new Map<string, number>()
  readonly #ids = new Map<string, Map<string, number>>()
  readonly #names: StateKeyName[] = []
  #chars = 0
  /** How many of them are in the database, or enqueued for it. */
  #written: number

  constructor(rows: readonly StateKeyRow[] = []) {
    const types = new Map<string, string>()
    for (const row of rows) {
      // All pairs of a type share one text.
      const type = types.get(row.type) ?? row.type
      types.set(type, type)
      this.#set(row.key_id, { type, stateKey: row.state_key })
    }
    this.#written = this.#names.length
  }

  #set(keyId: number, name: StateKeyName): void {
    const { type, stateKey } = name
    this.#names[keyId] = name
    this.#chars += stateKey.length
    if (stateKey === '') this.#plain.set(type, keyId)
    else {
      const byKey = this.#ids.get(type)
      if (byKey) byKey.set(stateKey, keyId)
      else this.#ids.set(type, new Map([[stateKey, keyId]]))
    }
  }

  idOf(type: string, stateKey: string): number | undefined {
    return stateKey === '' ? this.#plain.get(type) : this.#ids.get(type)?.get(stateKey)
  }

  /** Bytes in memory. */
  get bytes(): number {
    return this.#names.length * KEY_BYTES + this.#ids.size * TYPE_BYTES + this.#chars
  }

  nameOf(keyId: number): StateKeyName {
    const name = this.#names[keyId]
    if (!name) throw new Error(`no state key has the number ${keyId}`)
    return name
  }

  /** The number of a pair; a pair without one gets the next. */
  intern(type: string, stateKey: string): number {
    const known = this.idOf(type, stateKey)
    if (known !== undefined) return known
    const keyId = this.#names.length
    this.#set(keyId, { type, stateKey })
    return keyId
  }

  /** The pairs that are not written yet. The caller must write them next. */
  takeUnwritten(): StateKeyRow[] {
    const first = this.#written
    this.#written = this.#names.length
    return this.#names
      .slice(first)
      .map(({ type, stateKey }, index) => ({ key_id: first + index, type, state_key: stateKey }))
  }

  get size(): number {
    return this.#names.length
  }

  /** Takes back the newest numbers, down to `size`, when their events were not made after all. */
  truncate(size: number): void {
    for (const { type, stateKey } of this.#names.splice(size)) {
      this.#chars -= stateKey.length
      if (stateKey === '') this.#plain.delete(type)
      else this.#ids.get(type)?.delete(stateKey)
    }
  }

  /** All pairs of a type: `[state_key, number]`. */
  ofType(type: string): Iterable<[string, number]> {
    const plain = this.#plain.get(type)
    const others = this.#ids.get(type) ?? []
    return plain === undefined ? others : [['', plain], ...others]
  }
}

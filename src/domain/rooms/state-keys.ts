import type { StateKeyRow } from '../../store/state.ts'

export interface StateKeyName {
  readonly type: string
  readonly stateKey: string
}

/** The room-local numbers of `(type, state_key)` pairs. Numbers are dense from 0 and never change. */
export class StateKeys {
  readonly #ids = new Map<string, Map<string, number>>()
  readonly #names: StateKeyName[] = []
  /** How many of them are in the database, or on their way to it. */
  #written: number

  constructor(rows: readonly StateKeyRow[] = []) {
    for (const row of rows) {
      this.#names[row.key_id] = { type: row.type, stateKey: row.state_key }
      this.#index(row.type).set(row.state_key, row.key_id)
    }
    this.#written = this.#names.length
  }

  #index(type: string): Map<string, number> {
    let byKey = this.#ids.get(type)
    if (!byKey) {
      byKey = new Map()
      this.#ids.set(type, byKey)
    }
    return byKey
  }

  idOf(type: string, stateKey: string): number | undefined {
    return this.#ids.get(type)?.get(stateKey)
  }

  nameOf(keyId: number): StateKeyName {
    const name = this.#names[keyId]
    if (!name) throw new Error(`no state key has the number ${keyId}`)
    return name
  }

  /** The number of a pair, a new one when it has none yet. */
  intern(type: string, stateKey: string): number {
    const known = this.idOf(type, stateKey)
    if (known !== undefined) return known
    const keyId = this.#names.length
    this.#names.push({ type, stateKey })
    this.#index(type).set(stateKey, keyId)
    return keyId
  }

  /** The pairs that are yet to be written: whoever takes them writes them next. */
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

  /** Takes back the newest numbers, down to `size`: of events that were not made after all. */
  truncate(size: number): void {
    for (const { type, stateKey } of this.#names.splice(size)) this.#ids.get(type)?.delete(stateKey)
  }

  /** All pairs of a type: `[state_key, number]`. */
  ofType(type: string): Iterable<[string, number]> {
    return this.#ids.get(type) ?? []
  }
}

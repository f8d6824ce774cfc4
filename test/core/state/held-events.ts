import type { Pdu } from '../../../src/core/event/format.ts'
import type { EventId } from '../../../src/core/ids.ts'
import type { RoomVersion } from '../../../src/core/room-version.ts'
import { AuthGraph } from '../../../src/core/state/graph.ts'
import { type ResolutionSource, resolveStates, type StateEvent } from '../../../src/core/state/resolve.ts'
import { EMPTY_STATE, forEachState, getState, type StateMap, setState } from '../../../src/core/state/trie.ts'

/** Events of one room in memory, numbered as they came, and the source that a resolution asks. */
export class HeldEvents implements ResolutionSource {
  readonly version: RoomVersion
  readonly graph = new AuthGraph()
  readonly events = new Map<number, StateEvent>()
  /** How often events were loaded. */
  loads = 0
  /** By type and state key. */
  readonly #keys = new Map<string, Map<string, number>>()
  #keyCount = 0
  readonly #ids = new Set<EventId>()

  constructor(version: RoomVersion) {
    this.version = version
  }

  keyOf(type: string, stateKey: string): number | undefined {
    return this.#keys.get(type)?.get(stateKey)
  }

  async load(nids: readonly number[]): Promise<ReadonlyMap<number, StateEvent>> {
    this.loads++
    return new Map(nids.map((nid) => [nid, this.at(nid)]))
  }

  resolve(states: readonly StateMap[]): Promise<StateMap> {
    return resolveStates(this.version, states, this)
  }

  at(nid: number): StateEvent {
    const event = this.events.get(nid)
    if (event === undefined) throw new Error(`the room has no event ${nid}`)
    return event
  }

  /** Takes the next event in. What message events cite is of no interest. */
  hold(id: EventId, pdu: Pdu, auth: readonly number[]): StateEvent {
    const nid = this.events.size + 1
    const keyId = pdu.state_key === undefined ? undefined : this.#intern(pdu.type, pdu.state_key)
    const event = { nid, id, keyId, pdu }
    if (keyId !== undefined) this.graph.add(nid, auth)
    this.events.set(nid, event)
    this.#ids.add(id)
    return event
  }

  #intern(type: string, stateKey: string): number {
    const ofType = this.#keys.get(type) ?? new Map<string, number>()
    const key = ofType.get(stateKey) ?? this.#keyCount++
    this.#keys.set(type, ofType.set(stateKey, key))
    return key
  }

  /** The event that a state has under a key, if any. */
  eventIn(state: StateMap, type: string, stateKey = ''): StateEvent | undefined {
    const key = this.keyOf(type, stateKey)
    const nid = key === undefined ? 0 : getState(state, key)
    return nid === 0 ? undefined : this.at(nid)
  }

  idsOf(state: StateMap): EventId[] {
    return nidsOf(state)
      .map((nid) => this.at(nid).id)
      .sort()
  }

  hasId(id: EventId): boolean {
    return this.#ids.has(id)
  }

  /** The state that consists of these events. */
  stateOf(nids: readonly number[]): StateMap {
    return nids.reduce((state, nid) => setState(state, this.at(nid).keyId!, nid), EMPTY_STATE)
  }
}

/** The events of a state, as they came. */
export function nidsOf(state: StateMap): number[] {
  const nids: number[] = []
  forEachState(state, (_, nid) => nids.push(nid))
  return nids.sort((a, b) => a - b)
}

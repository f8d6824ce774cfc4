import { authorise } from '../../../src/core/auth/rules.ts'
import { authEventKeys } from '../../../src/core/auth/select.ts'
import { buildEvent, type EventDraft } from '../../../src/core/event/build.ts'
import type { EventReference, Pdu } from '../../../src/core/event/format.ts'
import { type EventId, type RoomId, serverOf, type UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import type { RoomVersion } from '../../../src/core/room-version.ts'
import { roomIdOfCreate } from '../../../src/core/signing/event-hash.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import { AuthGraph } from '../../../src/core/state/graph.ts'
import { type ResolutionSource, resolveStates, type StateEvent } from '../../../src/core/state/resolve.ts'
import { forEachState, getState, type StateMap, setState } from '../../../src/core/state/trie.ts'

export interface SimulatedEvent extends StateEvent {
  readonly reference: EventReference
  readonly prev: readonly number[]
  readonly before: StateMap
  readonly after: StateMap
}

export interface Sketch {
  readonly type: string
  readonly sender: UserId
  readonly content: JsonObject
  readonly stateKey?: string
  readonly ts?: number
  /** What the event cites, where its server does not do as it should, made of the auth events that it should cite. */
  readonly auth?: (selected: readonly number[]) => readonly number[]
}

const KEY = signingKeyFromSeed('ed25519:1', new Uint8Array(32))

/** A room in memory: real events, the states between them, and the source that a resolution asks. */
export class SimulatedRoom implements ResolutionSource {
  readonly version: RoomVersion
  readonly graph = new AuthGraph()
  readonly events = new Map<number, SimulatedEvent>()
  /** How often events were loaded. */
  loads = 0
  /** Merges on the way, for whoever wants to have them resolved by others too. */
  readonly merges: { readonly states: readonly StateMap[]; readonly resolved: StateMap }[] = []
  readonly #keys = new Map<string, number>()
  #roomId: RoomId | undefined

  constructor(version: RoomVersion) {
    this.version = version
    if (!version.roomIdIsCreateHash) this.#roomId = '!room:one.example' as RoomId
  }

  keyOf(type: string, stateKey: string): number | undefined {
    return this.#keys.get(JSON.stringify([type, stateKey]))
  }

  async load(nids: readonly number[]): Promise<ReadonlyMap<number, StateEvent>> {
    this.loads++
    return new Map(nids.map((nid) => [nid, this.at(nid)]))
  }

  at(nid: number): SimulatedEvent {
    const event = this.events.get(nid)
    if (event === undefined) throw new Error(`the room has no event ${nid}`)
    return event
  }

  get roomId(): RoomId | undefined {
    return this.#roomId
  }

  /** The id of the event that a state has under a key, if any. */
  idIn(state: StateMap, type: string, stateKey = ''): EventId | undefined {
    return this.pduIn(state, type, stateKey)?.id
  }

  pduIn(state: StateMap, type: string, stateKey = ''): SimulatedEvent | undefined {
    const key = this.keyOf(type, stateKey)
    const nid = key === undefined ? 0 : getState(state, key)
    return nid === 0 ? undefined : this.at(nid)
  }

  idsOf(state: StateMap): EventId[] {
    const ids: EventId[] = []
    forEachState(state, (_, nid) => ids.push(this.at(nid).id))
    return ids.sort()
  }

  resolve(states: readonly StateMap[]): Promise<StateMap> {
    return resolveStates(this.version, states, this)
  }

  async stateBefore(prev: readonly number[]): Promise<StateMap> {
    const states = prev.map((nid) => this.at(nid).after)
    const resolved = await this.resolve(states)
    if (states.length > 1) this.merges.push({ states, resolved })
    return resolved
  }

  /** Appends an event after others. One that the rules refuse, by its auth events or by the state before, is not taken. */
  async append(prev: readonly number[], sketch: Sketch): Promise<SimulatedEvent | undefined> {
    const before = await this.stateBefore(prev)
    const selected = this.#authEventsFor(sketch, before)
    const auth = sketch.auth?.(selected) ?? selected
    const built = buildEvent(this.version, this.#draft(prev, auth, sketch), serverOf(sketch.sender), KEY)
    const { pdu, eventId: id, reference } = built
    const byAuth = (type: string, stateKey: string) => this.#cited(auth, type, stateKey)
    const byState = (type: string, stateKey: string) => this.pduIn(before, type, stateKey)?.pdu
    if (!authorise(this.version, pdu, byAuth).allowed || !authorise(this.version, pdu, byState).allowed)
      return undefined
    return this.#take(prev, auth, before, { id, pdu, reference })
  }

  #authEventsFor(sketch: Sketch, before: StateMap): number[] {
    const { type, sender, content, stateKey } = sketch
    const draft = { type, sender, content, ...(stateKey === undefined ? {} : { state_key: stateKey }) }
    return authEventKeys(this.version, draft)
      .map(([wanted, key]) => this.pduIn(before, wanted, key)?.nid)
      .filter((nid) => nid !== undefined)
  }

  #cited(auth: readonly number[], type: string, stateKey: string): Pdu | undefined {
    const key = this.keyOf(type, stateKey)
    if (type === 'm.room.create' && !this.version.createIsAuthEvent) return this.events.get(1)?.pdu
    const nid = auth.find((each) => this.at(each).keyId === key)
    return nid === undefined ? undefined : this.at(nid).pdu
  }

  #draft(prev: readonly number[], auth: readonly number[], sketch: Sketch): EventDraft {
    const { type, sender, content, stateKey, ts } = sketch
    const nid = this.events.size + 1
    const depth = 1 + prev.reduce((deepest, each) => Math.max(deepest, this.at(each).pdu.depth), 0)
    return {
      type,
      sender,
      content,
      depth,
      origin_server_ts: ts ?? 1000 + nid,
      prev_events: prev.map((each) => this.at(each).reference),
      auth_events: auth.map((each) => this.at(each).reference),
      ...(this.#roomId === undefined ? {} : { room_id: this.#roomId }),
      ...(stateKey === undefined ? {} : { state_key: stateKey }),
      ...(this.version.eventIdFormat === 'opaque'
        ? { event_id: `$${Math.imul(nid, 0x9e3779b1) >>> 0}:${serverOf(sender)}` as EventId }
        : {}),
    }
  }

  #take(
    prev: readonly number[],
    auth: readonly number[],
    before: StateMap,
    { id, pdu, reference }: Pick<SimulatedEvent, 'id' | 'pdu' | 'reference'>,
  ): SimulatedEvent {
    const nid = this.events.size + 1
    const keyId = pdu.state_key === undefined ? undefined : this.#internKey(pdu.type, pdu.state_key)
    const after = keyId === undefined ? before : setState(before, keyId, nid)
    if (pdu.type === 'm.room.create') this.#roomId ??= roomIdOfCreate(id)
    if (keyId !== undefined) this.graph.add(nid, auth)
    const event = { nid, id, keyId, pdu, reference, prev, before, after }
    this.events.set(nid, event)
    return event
  }

  #internKey(type: string, stateKey: string): number {
    const text = JSON.stringify([type, stateKey])
    const key = this.#keys.get(text) ?? this.#keys.size
    this.#keys.set(text, key)
    return key
  }
}

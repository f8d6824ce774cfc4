import { authorise } from '../../../src/core/auth/rules.ts'
import { authEventKeys } from '../../../src/core/auth/select.ts'
import { buildEvent, type EventDraft } from '../../../src/core/event/build.ts'
import type { EventReference, Pdu } from '../../../src/core/event/format.ts'
import { type EventId, type RoomId, serverOf, type UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import type { RoomVersion } from '../../../src/core/room-version.ts'
import { roomIdOfCreate } from '../../../src/core/signing/event-hash.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import { type StateMap, setState } from '../../../src/core/state/trie.ts'
import { HeldEvents } from './held-events.ts'

/** Where an event stands in its room. */
export interface Place {
  readonly nid: number
  readonly reference: EventReference
  readonly prev: readonly number[]
  readonly auth: readonly number[]
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

export interface Merge {
  readonly states: readonly StateMap[]
  readonly resolved: StateMap
}

const KEY = signingKeyFromSeed('ed25519:1', new Uint8Array(32))
const CREATE = 1

/** A room that makes its events, real but for the key that signs them, and resolves the states between them. */
export class SimulatedRoom extends HeldEvents {
  /** Where branches met. */
  readonly merges: Merge[] = []
  readonly #places = new Map<number, Place>()
  #roomId: RoomId | undefined

  constructor(version: RoomVersion) {
    super(version)
    if (!version.roomIdIsCreateHash) this.#roomId = '!room:one.example' as RoomId
  }

  placeOf(nid: number): Place {
    const place = this.#places.get(nid)
    if (place === undefined) throw new Error(`the room has no event ${nid}`)
    return place
  }

  get places(): readonly Place[] {
    return [...this.#places.values()]
  }

  async stateBefore(prev: readonly number[]): Promise<StateMap> {
    const states = prev.map((nid) => this.placeOf(nid).after)
    const resolved = await this.resolve(states)
    if (states.length > 1) this.merges.push({ states, resolved })
    return resolved
  }

  /** Appends an event after others. One that is there, or that the rules refuse by its auth events or by the state before, is not taken. */
  async append(prev: readonly number[], sketch: Sketch): Promise<Place | undefined> {
    const before = await this.stateBefore(prev)
    const selected = this.#select(sketch, before)
    const auth = sketch.auth?.(selected) ?? selected
    const draft = this.#draft(prev, auth, sketch)
    const { pdu, eventId, reference } = buildEvent(this.version, draft, serverOf(sketch.sender), KEY)
    const byAuth = (type: string, stateKey: string) => this.#cited(auth, type, stateKey)
    const byState = (type: string, stateKey: string) => this.eventIn(before, type, stateKey)?.pdu
    if (!authorise(this.version, pdu, byAuth).allowed || !authorise(this.version, pdu, byState).allowed)
      return undefined
    if (this.hasId(eventId)) return undefined
    if (pdu.type === 'm.room.create') this.#roomId ??= roomIdOfCreate(eventId)
    const { nid, keyId } = this.hold(eventId, pdu, auth)
    const after = keyId === undefined ? before : setState(before, keyId, nid)
    const place = { nid, reference, prev, auth, before, after }
    this.#places.set(nid, place)
    return place
  }

  #select({ type, sender, content, stateKey }: Sketch, before: StateMap): number[] {
    const draft = { type, sender, content, ...(stateKey === undefined ? {} : { state_key: stateKey }) }
    return authEventKeys(this.version, draft)
      .map(([wanted, key]) => this.eventIn(before, wanted, key)?.nid)
      .filter((nid) => nid !== undefined)
  }

  #cited(auth: readonly number[], type: string, stateKey: string): Pdu | undefined {
    if (type === 'm.room.create' && !this.version.createIsAuthEvent) return this.at(CREATE).pdu
    const key = this.keyOf(type, stateKey)
    return auth.map((nid) => this.at(nid)).find(({ keyId }) => keyId === key)?.pdu
  }

  #draft(
    prev: readonly number[],
    auth: readonly number[],
    { type, sender, content, stateKey, ts }: Sketch,
  ): EventDraft {
    const nid = this.events.size + 1
    const ownId = `$${Math.imul(nid, 0x9e3779b1) >>> 0}:${serverOf(sender)}` as EventId
    return {
      type,
      sender,
      content,
      depth: 1 + prev.reduce((deepest, each) => Math.max(deepest, Number(this.at(each).pdu.depth)), 0),
      origin_server_ts: ts ?? 1000 + nid,
      prev_events: prev.map((each) => this.placeOf(each).reference),
      auth_events: auth.map((each) => this.placeOf(each).reference),
      ...(this.#roomId === undefined ? {} : { room_id: this.#roomId }),
      ...(stateKey === undefined ? {} : { state_key: stateKey }),
      ...(this.version.eventIdFormat === 'opaque' ? { event_id: ownId } : {}),
    }
  }
}

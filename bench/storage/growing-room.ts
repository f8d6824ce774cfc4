import { EMPTY_STATE, getState, type StateMap, setState } from '../../src/core/state/trie.ts'
import type { ChainWrite, ChangeWrite, EventBatch, HeadWrite, KeyWrite } from '../../src/store/events/event-writes.ts'
import { NO_RELATIONS } from '../../src/store/events/relation-writes.ts'
import type { StatePoint } from '../../src/store/events/state.ts'
import { NO_UNREAD } from '../../src/store/events/unread-writes.ts'
import { eventRow, type NewEvent, userName } from './event-rows.ts'

/**
 * `forked`: of every ten events two are made side by side and the next joins them again.
 * `tangled`: four of them are, two on each side in turn.
 */
export type Shape = 'linear' | 'forked' | 'tangled'

const FORKED_PLACES: Readonly<Record<Shape, readonly number[]>> = { linear: [], forked: [5, 6], tangled: [5, 6, 7, 8] }

export interface Mix {
  readonly shape: Shape
  /** Of ten events, which are messages. Those on two sides are changes of state. */
  readonly isMessage: (place: number) => boolean
  /** Whether the next state change sets a key that was never set. */
  readonly setsNewKey: (keys: number, index: number) => boolean
}

type Pieces = {
  -readonly [Part in 'events' | 'chains' | 'changes' | 'keys' | 'txns']: EventBatch[Part][number][]
}

/** A room that is written the way the room engine writes one, without the engine's checks. */
export class GrowingRoom {
  readonly nid: number
  /** The current state, which stands on chain 0 where branches are joined as they grow. */
  state: StateMap = EMPTY_STATE
  seq = 0
  keys = 0
  stateEvents = 0
  /** Changes logged: those of state events, and those that joining two sides repeats. */
  changes = 0
  /** Changes at the last checkpoint. */
  checkpointSeq = 0
  readonly #mix: Mix
  readonly #takeNid: () => number
  #events = 0
  #lastChain = 0
  #version = 0
  #lastNid = 0
  #takenNid = 0
  #pieces: Pieces = { events: [], chains: [], changes: [], keys: [], txns: [] }
  /** While the room is forked: where each side stands, and what was set last on each. */
  #sides: StatePoint[] = []

  constructor(nid: number, mix: Mix, takeNid: () => number) {
    this.nid = nid
    this.#mix = mix
    this.#takeNid = takeNid
  }

  /** Where the state stands now. */
  get point(): StatePoint {
    return { chain: 0, seq: this.seq }
  }

  /** Makes the next event; {@link take} gives all that were made since. */
  step(): void {
    const place = this.#events % 10
    const isForked = this.#events >= 10 && FORKED_PLACES[this.#mix.shape].includes(place)
    if (isForked && place === 5) this.#sides = [this.point, this.point]
    if (isForked) this.#stepOnSide(place % 2)
    else if (this.#mix.isMessage(place)) this.#message()
    else this.#change(this.point, undefined)
    this.#events++
  }

  #message(): void {
    const eventNid = this.#takeNid()
    this.#add({ eventNid, before: this.point, keyId: undefined, replaces: 0, current: undefined })
    this.#pieces.txns.push({
      tokenNid: 17,
      earlierTokens: [],
      hash: `${this.nid}/${eventNid}/0123456789abcdef`,
      roomNid: this.nid,
      eventNid,
      ts: eventNid,
    })
  }

  /** On a side whose last change is not the newest of its chain, a change begins a chain. What both sides resolve to is on chain 0. */
  #stepOnSide(side: number): void {
    const before = this.#sides[side]!
    if (before.chain === 0 && before.seq === this.seq) {
      this.#change(before, undefined)
      this.#sides[side] = this.point
      return
    }
    const start = before.chain === 0 ? { chain: ++this.#lastChain, seq: 0 } : before
    if (start.seq === 0) {
      this.#pieces.chains.push({ roomNid: this.nid, chain: start.chain, parentChain: 0, parentSeq: before.seq })
    }
    this.#change(start, { chain: 0, seq: this.seq + 1 })
    this.#sides[side] = { chain: start.chain, seq: start.seq + 1 }
  }

  /** A state event at a point; with `current`, its change is set once more where the room's current state is. */
  #change(before: StatePoint, current: StatePoint | undefined): void {
    const eventNid = this.#takeNid()
    const keyId = this.#chooseKey()
    this.#add({ eventNid, before, keyId, replaces: getState(this.state, keyId), current })
    this.#log({ chain: before.chain, seq: before.seq + 1 }, keyId, eventNid)
    if (current) this.#log(current, keyId, eventNid)
    this.state = setState(this.state, keyId, eventNid)
    this.seq++
    this.stateEvents++
  }

  #chooseKey(): number {
    if (this.keys > 0 && !this.#mix.setsNewKey(this.keys, this.stateEvents))
      return (this.stateEvents * 7_919) % this.keys
    const keyId = this.keys++
    this.#pieces.keys.push({ roomNid: this.nid, keyId, type: 'm.room.member', stateKey: userName(keyId) })
    return keyId
  }

  #log({ chain, seq }: StatePoint, keyId: number, eventNid: number): void {
    this.changes++
    this.#pieces.changes.push({ roomNid: this.nid, chain, seq, keyId, eventNid })
  }

  #add(event: Omit<NewEvent, 'roomNid' | 'roomPos' | 'notifiable'>): void {
    this.#lastNid = event.eventNid
    const place = { roomNid: this.nid, roomPos: this.#events + 1, notifiable: this.#events }
    this.#pieces.events.push(eventRow({ ...event, ...place }))
  }

  /** All that was made since the last time, and the head that it leads to. */
  take(): Pieces & { readonly head: HeadWrite } {
    const pieces = this.#pieces
    this.#pieces = { events: [], chains: [], changes: [], keys: [], txns: [] }
    const expected = this.#version
    const expectedNid = this.#takenNid
    this.#version += pieces.events.length
    this.#takenNid = this.#lastNid
    const head = {
      roomNid: this.nid,
      roomId: `!room${this.nid}`,
      roomVersion: '12',
      expected,
      expectedNid,
      version: this.#version,
      extremities: [this.#lastNid],
      merged: 1,
      depth: this.#events,
      lastPos: this.#events,
      lastNid: this.#lastNid,
      notifiable: this.#events,
      stateChain: 0,
      stateSeq: this.seq,
    }
    return { ...pieces, head }
  }
}

/** One commit of what some rooms made. */
export function batchOf(rooms: readonly GrowingRoom[]): EventBatch {
  const taken = rooms.map((room) => room.take()).filter(({ events }) => events.length > 0)
  return {
    heads: taken.map(({ head }) => head),
    events: taken.flatMap(({ events }) => events),
    promoted: [],
    chains: taken.flatMap(({ chains }): readonly ChainWrite[] => chains),
    resynced: [],
    gaps: [],
    filled: [],
    earlyRedactions: [],
    keys: taken.flatMap(({ keys }): readonly KeyWrite[] => keys),
    changes: taken.flatMap(({ changes }): readonly ChangeWrite[] => changes),
    members: [],
    unread: NO_UNREAD,
    txns: taken.flatMap(({ txns }) => txns),
    redactions: [],
    sticky: [],
    relations: NO_RELATIONS,
  }
}

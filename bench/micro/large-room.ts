import type { Pdu } from '../../src/core/event/format.ts'
import type { EventId, UserId } from '../../src/core/ids.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { RoomVersion } from '../../src/core/room-version.ts'
import { eventIdOf, roomIdOfCreate } from '../../src/core/signing/event-hash.ts'
import { AuthGraph } from '../../src/core/state/graph.ts'
import type { ResolutionSource, StateEvent } from '../../src/core/state/resolve.ts'
import { EMPTY_STATE, getState, type StateMap, setState } from '../../src/core/state/trie.ts'

const CREATOR = '@creator:one.example' as UserId
const EVENTS_PER_POWER_CHANGE = 500

/** A room of many members in memory, every event of which can be loaded at once. Its events have no hashes and no signatures. */
export class LargeRoom implements ResolutionSource {
  readonly version: RoomVersion
  readonly graph = new AuthGraph()
  readonly #events = new Map<number, StateEvent>()
  readonly #keys = new Map<string, number>()
  #room = {}

  constructor(version: RoomVersion) {
    this.version = version
  }

  keyOf(type: string, stateKey: string): number | undefined {
    return this.#keys.get(`${type} ${stateKey}`)
  }

  async load(nids: readonly number[]): Promise<ReadonlyMap<number, StateEvent>> {
    return new Map(nids.map((nid) => [nid, this.#events.get(nid)!]))
  }

  /** The state after an event that cites what it should. */
  after(state: StateMap, type: string, sender: UserId, stateKey: string, content: JsonObject): StateMap {
    const auth = [
      ...(this.version.createIsAuthEvent ? [this.#in(state, 'm.room.create', '')] : []),
      this.#in(state, 'm.room.power_levels', ''),
      this.#in(state, 'm.room.member', sender),
      ...(type === 'm.room.member' ? [this.#in(state, 'm.room.join_rules', '')] : []),
      ...(type === 'm.room.member' && stateKey !== sender ? [this.#in(state, 'm.room.member', stateKey)] : []),
    ].filter((nid) => nid !== 0)
    const nid = this.#events.size + 1
    const id = `$event${nid}` as EventId
    const pdu = { ...this.#room, type, sender, state_key: stateKey, content, ...frameOf(nid) } satisfies Pdu
    return this.#take(state, auth, { nid, id, keyId: this.#intern(type, stateKey), pdu })
  }

  create(): StateMap {
    const content = { room_version: this.version.id, creator: CREATOR }
    const roomId = this.version.roomIdIsCreateHash ? {} : { room_id: '!room:one.example' }
    const pdu = { ...roomId, type: 'm.room.create', sender: CREATOR, state_key: '', content, ...frameOf(1) } as Pdu
    const id = this.version.roomIdIsCreateHash ? eventIdOf(this.version, pdu) : ('$event1' as EventId)
    this.#room = this.version.roomIdIsCreateHash ? { room_id: roomIdOfCreate(id) } : roomId
    return this.#take(EMPTY_STATE, [], { nid: 1, id, keyId: this.#intern('m.room.create', ''), pdu })
  }

  #take(state: StateMap, auth: readonly number[], event: StateEvent): StateMap {
    this.#events.set(event.nid, event)
    this.graph.add(event.nid, auth)
    return setState(state, event.keyId!, event.nid)
  }

  #in(state: StateMap, type: string, stateKey: string): number {
    const key = this.keyOf(type, stateKey)
    return key === undefined ? 0 : getState(state, key)
  }

  #intern(type: string, stateKey: string): number {
    const name = `${type} ${stateKey}`
    const key = this.#keys.get(name) ?? this.#keys.size
    this.#keys.set(name, key)
    return key
  }
}

function frameOf(nid: number) {
  const reference = '$event0' as EventId
  return {
    origin_server_ts: nid,
    depth: nid,
    prev_events: nid === 1 ? [] : [reference],
    auth_events: [],
    hashes: { sha256: '' },
    signatures: {},
  }
}

const userAt = (index: number) => `@user${index}:two.example` as UserId

export interface Fork {
  readonly room: LargeRoom
  readonly states: readonly [StateMap, StateMap]
}

/**
 * A room with this many events, two for each member, whose power levels change now and then, and in which the state of two
 * branches differs under `differing` keys: members' names on either side, and on one side the power levels.
 */
export function forkedRoom(version: RoomVersion, events: number, differing: number): Fork {
  const room = new LargeRoom(version)
  const join = { membership: 'join' }
  const powerLevels = (state: StateMap, topic: number) =>
    room.after(state, 'm.room.power_levels', CREATOR, '', { users: levels, events: { 'm.room.topic': topic } })
  const levels: JsonObject = version.creatorsAreInfinite ? {} : { [CREATOR]: 100 }
  let state = room.after(room.create(), 'm.room.member', CREATOR, CREATOR, join)
  state = powerLevels(state, 50)
  state = room.after(state, 'm.room.join_rules', CREATOR, '', { join_rule: 'public' })
  const members = Math.floor(events / 2)
  let changes = 0
  for (let nid = room.graph.size; nid < events - differing; nid++) {
    if (nid % EVENTS_PER_POWER_CHANGE === 0) {
      state = powerLevels(state, nid % 100)
      continue
    }
    const user = userAt(changes++ % members)
    state = room.after(state, 'm.room.member', user, user, { ...join, displayname: `${nid}` })
  }
  let [left, right] = [powerLevels(state, 1), state]
  for (let index = 1; index < differing; index++) {
    const user = userAt(index * 7)
    const rename = (from: StateMap) => room.after(from, 'm.room.member', user, user, { ...join, displayname: 'new' })
    if (index % 2 === 0) left = rename(left)
    else right = rename(right)
  }
  return { room, states: [left, right] }
}

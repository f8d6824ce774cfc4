import { referencedId } from '../../../core/event/format.ts'
import type { EventId, RoomId } from '../../../core/ids.ts'
import type { AuthGraph } from '../../../core/state/graph.ts'
import { forEachState } from '../../../core/state/trie.ts'
import type { Database, Reader } from '../../../store/db/db.ts'
import { getEventIds, getEventTexts } from '../../../store/events/events.ts'
import { getHeroes } from '../../../store/rooms/rooms.ts'
import type { StateIds } from '../receive/federation-queries.ts'
import type { Branches } from '../room/branches.ts'
import type { EventCache } from '../room/event-cache.ts'
import { stateNids } from '../room/past-state.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { loadIn, mayBeServed } from './served-events.ts'

/** A state and its auth chain: the canonical JSON of each event. */
export interface StateTexts {
  readonly state: readonly string[]
  readonly authChain: readonly string[]
}

/** What a joining server gets. */
export interface JoinAnswer extends StateTexts {
  readonly areMembersOmitted: boolean
}

/** The states of a room and their auth chains, for other servers that ask. */
export interface ResidentState {
  /** The auth chain of an event, the first events of the room first (`GET event_auth`). */
  authChain(roomId: RoomId, eventId: EventId): Promise<readonly string[] | undefined>
  /** The state before an event and its auth chain (`GET state_ids`); undefined where this server does not know it. */
  stateIds(roomId: RoomId, eventId: EventId): Promise<StateIds | undefined>
  /** The same, in full (`GET state`). */
  stateAt(roomId: RoomId, eventId: EventId): Promise<StateTexts | undefined>
  /**
   * The state before a join, with its auth chain and the join itself (`PUT send_join`).
   *
   * @param omitsMembers whether to leave out members, except those whom a room without a name is named after, and to give each event only
   * once
   */
  joinAnswer(roomId: RoomId, eventId: EventId, omitsMembers?: boolean): Promise<JoinAnswer | undefined>
}

export interface ResidentStateParts {
  readonly db: Database
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly branches: Branches
}

/** State that names a room. */
const NAMES = ['m.room.name', 'm.room.canonical_alias']
/** This many members give a room without a name its name (client-server API, `m.heroes`). */
const HEROES = 5

export function createResidentState({ db, registry, events, branches }: ResidentStateParts): ResidentState {
  /** An event, if this server may serve it for this room. */
  async function eventIn(roomId: RoomId, eventId: EventId): Promise<{ room: Room; event: RoomEvent } | undefined> {
    const room = await registry.get(roomId)
    const [event] = room ? await loadIn(events, room, [eventId]) : []
    return room && event?.hasPlace && mayBeServed(event) ? { room, event } : undefined
  }

  /** The state before an event and its auth chain, each event as `read` gives it. */
  async function stateBefore<T>(
    roomId: RoomId,
    eventId: EventId,
    read: (reader: Reader, nids: readonly number[]) => Promise<Map<number, T>>,
  ): Promise<{ state: T[]; authChain: T[] } | undefined> {
    const found = await eventIn(roomId, eventId)
    if (!found) return undefined
    const { room, event } = found
    const state = stateNids(await branches.stateAt(room, event.pointBefore))
    return readBoth(state, await chainOf(room, state), read)
  }

  async function readBoth<T>(
    state: readonly number[],
    authChain: readonly number[],
    read: (reader: Reader, nids: readonly number[]) => Promise<Map<number, T>>,
  ): Promise<{ state: T[]; authChain: T[] }> {
    const found = await read({ query: db.scan }, [...new Set([...state, ...authChain])])
    return { state: state.map((nid) => found.get(nid)!), authChain: authChain.map((nid) => found.get(nid)!) }
  }

  /**
   * The auth chain of some state and of an event after it, each event after its auth events: an event has a higher number than what it
   * cites. The create event is included also where the room's id stands for it.
   */
  async function chainOf(room: Room, state: readonly number[], event?: RoomEvent): Promise<number[]> {
    const cited = event
      ? (await loadIn(events, room, event.pdu.auth_events.map(referencedId))).map(({ nid }) => nid)
      : []
    const chain = new Set([...cited, ...authChainOf(await branches.authGraph(room), [...state, ...cited])])
    const create = room.version.createIsAuthEvent ? 0 : room.stateNid(room.committed.state, 'm.room.create', '')
    if (create !== 0 && create !== event?.nid) chain.add(create)
    return [...chain].sort((one, other) => one - other)
  }

  async function withMembers(room: Room, event: RoomEvent): Promise<JoinAnswer> {
    const state = stateNids(await branches.stateAt(room, event.pointBefore))
    const chain = await chainOf(room, state, event)
    return { ...(await readBoth(state, chain, getEventTexts)), areMembersOmitted: false }
  }

  async function withoutMembers(room: Room, event: RoomEvent): Promise<JoinAnswer> {
    const before = await branches.stateAt(room, event.pointBefore)
    const isNamed = NAMES.some((type) => room.stateNid(before, type, '') !== 0)
    const heroes = isNamed ? [] : await getHeroes(db, room.nid, event.senderNid, HEROES)
    const state = heroes.map((userId) => room.stateNid(before, 'm.room.member', userId)).filter((nid) => nid !== 0)
    forEachState(before, (keyId, nid) => {
      if (room.keys.nameOf(keyId).type !== 'm.room.member') state.push(nid)
    })
    const given = new Set(state)
    const authChain = (await chainOf(room, state, event)).filter((nid) => !given.has(nid))
    return { ...(await readBoth(state, authChain, getEventTexts)), areMembersOmitted: given.size < before.size }
  }

  return {
    async authChain(roomId, eventId) {
      const room = await registry.get(roomId)
      const [event] = room ? await loadIn(events, room, [eventId]) : []
      if (!room || !event || !mayBeServed(event)) return undefined
      const chain = await chainOf(room, [], event)
      const texts = await getEventTexts({ query: db.scan }, chain)
      return chain.flatMap((nid) => texts.get(nid) ?? [])
    },

    stateIds: (roomId, eventId) => stateBefore(roomId, eventId, getEventIds),
    stateAt: (roomId, eventId) => stateBefore(roomId, eventId, getEventTexts),
    async joinAnswer(roomId, eventId, omitsMembers = false) {
      const found = await eventIn(roomId, eventId)
      return found && (omitsMembers ? withoutMembers(found.room, found.event) : withMembers(found.room, found.event))
    },
  }
}

/** The auth chain of some events. */
function authChainOf(graph: AuthGraph, nids: readonly number[]): number[] {
  const chain = new Set<number>()
  const open = [...nids]
  for (let nid = open.pop(); nid !== undefined; nid = open.pop()) {
    for (const auth of graph.authOf(nid)) {
      if (chain.has(auth)) continue
      chain.add(auth)
      open.push(auth)
    }
  }
  return [...chain]
}

import { type BuiltEvent, buildEvent } from '../../src/core/event/build.ts'
import type { EventId, RoomId, UserId } from '../../src/core/ids.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { roomVersion } from '../../src/core/room-version.ts'
import type { StubServer } from './stub-servers.ts'

export const VERSION = roomVersion('11')!

/** A room of many members, as the server of its maker holds it. */
export interface StubRoom {
  readonly roomId: RoomId
  /** Canonical JSON of the state events, those of members apart. */
  readonly state: readonly string[]
  readonly members: readonly string[]
  /** Events that authorise those and are state no more. */
  readonly superseded: readonly string[]
  readonly ids: { readonly state: readonly EventId[]; readonly authChain: readonly EventId[] }
  /** By id, all of these. */
  readonly texts: ReadonlyMap<EventId, string>
  /** What a newcomer's membership is to say of its place in the room. */
  readonly place: Pick<BuiltEvent['pdu'], 'prev_events' | 'auth_events' | 'depth'>
}

const MEMBER = 'm.room.member'
const FIRST_MOMENT = 1_700_000_000_000
/** Of so many members one has changed their name, so that an earlier membership is in the auth chain. */
const RENAMED_EVERY = 10

/** A public room in which every server has as many members as the others. */
export function buildStubRoom(servers: readonly StubServer[], count: number): StubRoom {
  const roomId = `!large:${servers[0]!.name}` as RoomId
  const members: string[] = []
  const superseded: string[] = []
  const texts = new Map<EventId, string>()
  const chain = new Set<EventId>()
  const current = new Set<EventId>()
  let prev: EventId[] = []
  let depth = 0

  function add(n: number, type: string, stateKey: string, content: JsonObject, cited: readonly EventId[]): BuiltEvent {
    const server = servers[n % servers.length]!
    const draft = {
      type,
      sender: userOf(servers, n),
      room_id: roomId,
      state_key: stateKey,
      content,
      origin_server_ts: FIRST_MOMENT + depth * 10,
      depth: ++depth,
      prev_events: prev,
      auth_events: cited,
    }
    const built = buildEvent(VERSION, draft, server.name, server.key)
    prev = [built.eventId]
    texts.set(built.eventId, built.json)
    current.add(built.eventId)
    for (const id of cited) chain.add(id)
    return built
  }

  const joins = (n: number, cited: readonly EventId[], name = `Member ${n}`): BuiltEvent => {
    const avatar_url = `mxc://${servers[n % servers.length]!.name}/picture-of-the-member-${n}`
    return add(n, MEMBER, userOf(servers, n), { membership: 'join', displayname: name, avatar_url }, cited)
  }

  const maker = userOf(servers, 0)
  const create = add(0, 'm.room.create', '', { room_version: VERSION.id }, [])
  const first = joins(0, [create.eventId])
  const powers = add(0, 'm.room.power_levels', '', { users: { [maker]: 100 } }, [create.eventId, first.eventId])
  const byMaker = [create.eventId, powers.eventId, first.eventId]
  const rules = add(0, 'm.room.join_rules', '', { join_rule: 'public' }, byMaker)
  const name = add(0, 'm.room.name', '', { name: 'A large room' }, byMaker)
  const cited = [create.eventId, powers.eventId, rules.eventId]
  members.push(first.json)
  for (let n = 1; n < count; n++) {
    const joined = joins(n, cited)
    if (n % RENAMED_EVERY !== 0) members.push(joined.json)
    else {
      superseded.push(joined.json)
      current.delete(joined.eventId)
      members.push(joins(n, [...cited, joined.eventId], `Renamed ${n}`).json)
    }
  }
  return {
    roomId,
    state: [create, powers, rules, name].map(({ json }) => json),
    members,
    superseded,
    ids: { state: [...current], authChain: [...chain] },
    texts,
    place: { prev_events: prev, auth_events: cited, depth: depth + 1 },
  }
}

export function userOf(servers: readonly StubServer[], n: number): UserId {
  return `@member-${n}:${servers[n % servers.length]!.name}` as UserId
}

import { createCache } from '../../core/cache.ts'
import { groupBy } from '../../core/group-by.ts'
import { type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import {
  getLocalMemberships,
  getMembershipEventAt,
  type LocalMembership,
} from '../../store/appservices/appservice-queue.ts'
import type { Reader } from '../../store/db/db.ts'
import { type AliasRow, getAliasesOfRooms } from '../../store/rooms/aliases.ts'
import { MAX_ROOMS_WITH_INTEREST } from '../limits.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { Appservice } from './appservice.ts'
import type { AppserviceRegistry } from './registry.ts'

export interface RoomName {
  readonly nid: number
  readonly id: string
}

/** An event and its room. */
export interface PlacedEvent {
  readonly room: RoomName
  readonly event: RoomEvent
}

/**
 * Which services an event concerns (application service API, "Registration"): by the room's id or aliases, by their users in the room, by
 * the sender, or by the user that it is about. Ask in stream order: the cached view of a room moves on with the events, so that an event
 * that is read again days later concerns the same services as before.
 */
export interface Interest {
  /** Loads the rooms of these events together, so that `of` answers without a query. Undefined if they are loaded. */
  meet(events: readonly PlacedEvent[]): Promise<void> | undefined
  of(room: RoomName, event: RoomEvent): readonly Appservice[] | Promise<readonly Appservice[]>
  /** The services that an ephemeral event of a room concerns at the moment. */
  inRoom(room: RoomName): Promise<readonly Appservice[]>
  /** Call this when memberships or aliases of a room changed without an event. */
  forget(roomNid: number): void
  clear(): void
}

/** Why services are interested in a room: always, or as long as these users of theirs are in it. */
interface RoomInterest {
  readonly always: ReadonlySet<Appservice>
  readonly joined: Map<Appservice, Set<string>>
  /** Both together; undefined after a change. */
  all: readonly Appservice[] | undefined
}

const NOBODY: readonly Appservice[] = []

export function createInterest(deps: {
  readonly db: Reader
  readonly events: EventCache
  readonly serverName: ServerName
  readonly registry: AppserviceRegistry
}): Interest {
  const { db, events, serverName, registry } = deps
  const rooms = createCache<number, RoomInterest>(MAX_ROOMS_WITH_INTEREST)

  /** Counts calls of `forget`: a read that began before one may be out of date. */
  let forgotten = 0

  function claimants(userId: string): readonly Appservice[] {
    if (serverOf(userId) !== serverName) return NOBODY
    const claims = registry.claimsOn('users', userId)
    return claims.length === 0 ? NOBODY : claims.map(({ service }) => service)
  }

  function note(interest: RoomInterest, userId: string, isIn: boolean): void {
    const { joined } = interest
    for (const service of claimants(userId)) {
      const users = joined.get(service) ?? new Set()
      if (isIn) joined.set(service, users.add(userId))
      else if (users.delete(userId) && users.size === 0) joined.delete(service)
      interest.all = undefined
    }
  }

  /** Whether a user was in the room right after an event of the stream. */
  async function wasIn(room: RoomName, { user_id, membership, event_nid }: LocalMembership, upTo: number) {
    if (event_nid <= upTo) return membership === 'join'
    const nid = await getMembershipEventAt(db, room.nid, user_id, upTo)
    const event = nid === undefined ? undefined : (await events.load([nid])).get(nid)
    return event?.content.membership === 'join'
  }

  /** @param wanted rooms by nid, each with the event of the stream as of which it is wanted */
  async function load(wanted: ReadonlyMap<number, Wanted>): Promise<Map<number, RoomInterest>> {
    const before = forgotten
    const nids = [...wanted.keys()]
    const [members, aliases] = await Promise.all([getLocalMemberships(db, nids), getAliasesOfRooms(db, nids)])
    const read = new Map<number, RoomInterest>()
    const aliasesOf = groupBy(aliases, ({ room_nid }) => room_nid)
    for (const { room } of wanted.values()) read.set(room.nid, interestIn(room, aliasesOf.get(room.nid) ?? []))
    for (const member of members) {
      const { room, upTo } = wanted.get(member.room_nid)!
      if (claimants(member.user_id).length > 0 && (await wasIn(room, member, upTo)))
        note(read.get(room.nid)!, member.user_id, true)
    }
    if (before === forgotten) for (const [nid, interest] of read) rooms.set(nid, interest)
    return read
  }

  function interestIn(room: RoomName, aliases: readonly AliasRow[]): RoomInterest {
    const claims = [
      registry.claimsOn('rooms', room.id),
      ...aliases.map(({ alias }) => registry.claimsOn('aliases', alias)),
    ]
    return { always: new Set(claims.flat().map(({ service }) => service)), joined: new Map(), all: undefined }
  }

  async function loadOne(room: RoomName, upTo: number): Promise<RoomInterest> {
    return (await load(new Map([[room.nid, { room, upTo }]]))).get(room.nid)!
  }

  function everybody(interest: RoomInterest): readonly Appservice[] {
    interest.all ??= [...new Set([...interest.always, ...interest.joined.keys()])]
    return interest.all
  }

  /** The services that the event concerns. Then applies the event's changes for the next. */
  function take(interest: RoomInterest, event: RoomEvent): readonly Appservice[] {
    const target = targetOf(event)
    const concerned = withThese(everybody(interest), claimants(event.sender))
    if (target === undefined) return concerned
    note(interest, target, event.content.membership === 'join')
    return withThese(concerned, claimants(target))
  }

  return {
    meet(events) {
      const wanted = new Map<number, Wanted>()
      for (const { room, event } of events) {
        if (rooms.has(room.nid) || wanted.has(room.nid)) continue
        wanted.set(room.nid, { room, upTo: event.streamPos })
      }
      return wanted.size === 0 ? undefined : load(wanted).then(() => undefined)
    },
    of(room, event) {
      const known = rooms.get(room.nid)
      return known === undefined ? loadOne(room, event.streamPos).then((read) => take(read, event)) : take(known, event)
    },
    async inRoom(room) {
      return everybody(rooms.get(room.nid) ?? (await loadOne(room, Number.MAX_SAFE_INTEGER)))
    },
    forget(roomNid) {
      forgotten++
      rooms.delete(roomNid)
    },
    clear() {
      forgotten++
      rooms.clear()
    },
  }
}

/** A room, and the stream position of the first event in question. */
interface Wanted {
  readonly room: RoomName
  readonly upTo: number
}

function withThese(services: readonly Appservice[], more: readonly Appservice[]): readonly Appservice[] {
  return more.every((service) => services.includes(service)) ? services : [...new Set([...services, ...more])]
}

function targetOf({ type, isState, pdu }: RoomEvent): UserId | undefined {
  return type === 'm.room.member' && isState ? (pdu.state_key as UserId) : undefined
}

import { createCache } from '../../core/cache.ts'
import { type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import { getAliasesOfRoom } from '../../store/aliases.ts'
import { getLocalMemberships, getMembershipEventAt, type LocalMembership } from '../../store/appservice-queue.ts'
import type { Reader } from '../../store/db.ts'
import { MAX_ROOMS_WITH_INTEREST } from '../limits.ts'
import type { EventCache } from '../rooms/event-cache.ts'
import type { RoomEvent } from '../rooms/room-event.ts'
import type { Appservice } from './appservice.ts'
import type { AppserviceRegistry } from './registry.ts'

export interface RoomName {
  readonly nid: number
  readonly id: string
}

/**
 * Which services an event concerns (application service API, "Registration"): by the room's id or aliases, by users of theirs who are
 * in the room, by its sender or by the user it is about. Asked about events in the order of the stream: what it remembers of a
 * room moves on with them, so that an event that is read again days later concerns whom it concerned then.
 */
export interface Interest {
  of(room: RoomName, event: RoomEvent): readonly Appservice[] | Promise<readonly Appservice[]>
  /** The services that an ephemeral event of a room concerns now. */
  inRoom(room: RoomName): Promise<readonly Appservice[]>
  /** Memberships or aliases of a room changed in a way that no event showed. */
  forget(roomNid: number): void
  clear(): void
}

/** Why services care for a room: always, or for as long as these users of theirs are in it. */
interface RoomInterest {
  readonly always: ReadonlySet<Appservice>
  readonly joined: Map<Appservice, Set<string>>
}

export function createInterest(deps: {
  readonly db: Reader
  readonly events: EventCache
  readonly serverName: ServerName
  readonly registry: AppserviceRegistry
}): Interest {
  const { db, events, serverName, registry } = deps
  const rooms = createCache<number, RoomInterest>(MAX_ROOMS_WITH_INTEREST)

  function claimants(userId: string): readonly Appservice[] {
    if (serverOf(userId) !== serverName) return []
    return registry.claimsOn('users', userId).map(({ service }) => service)
  }

  function note({ joined }: RoomInterest, userId: string, isIn: boolean): void {
    for (const service of claimants(userId)) {
      const users = joined.get(service) ?? new Set()
      if (isIn) joined.set(service, users.add(userId))
      else if (users.delete(userId) && users.size === 0) joined.delete(service)
    }
  }

  /** Whether a user was in the room right after an event of the stream. */
  async function wasIn(room: RoomName, { user_id, membership, event_nid }: LocalMembership, upTo: number) {
    if (event_nid <= upTo) return membership === 'join'
    const nid = await getMembershipEventAt(db, room.nid, user_id, upTo)
    const event = nid === undefined ? undefined : (await events.load([nid])).get(nid)
    return event?.content.membership === 'join'
  }

  async function load(room: RoomName, upTo: number): Promise<RoomInterest> {
    const [members, aliases] = await Promise.all([getLocalMemberships(db, room.nid), getAliasesOfRoom(db, room.nid)])
    const always = new Set(
      [
        ...registry.claimsOn('rooms', room.id),
        ...aliases.flatMap(({ alias }) => [...registry.claimsOn('aliases', alias)]),
      ].map(({ service }) => service),
    )
    const interest: RoomInterest = { always, joined: new Map() }
    for (const member of members) {
      if (claimants(member.user_id).length > 0 && (await wasIn(room, member, upTo)))
        note(interest, member.user_id, true)
    }
    rooms.set(room.nid, interest)
    return interest
  }

  /** Those concerned, and then what the event changes for the next. */
  function take(interest: RoomInterest, event: RoomEvent): readonly Appservice[] {
    const target = targetOf(event)
    const concerned = new Set([...interest.always, ...interest.joined.keys(), ...claimants(event.sender)])
    if (target === undefined) return [...concerned]
    note(interest, target, event.content.membership === 'join')
    return [...new Set([...concerned, ...claimants(target)])]
  }

  return {
    of(room, event) {
      const known = rooms.get(room.nid)
      return known === undefined ? load(room, event.streamPos).then((read) => take(read, event)) : take(known, event)
    },
    async inRoom(room) {
      const { always, joined } = rooms.get(room.nid) ?? (await load(room, Number.MAX_SAFE_INTEGER))
      return [...new Set([...always, ...joined.keys()])]
    },
    forget: (roomNid) => void rooms.delete(roomNid),
    clear: () => rooms.clear(),
  }
}

function targetOf({ type, isState, pdu }: RoomEvent): UserId | undefined {
  return type === 'm.room.member' && isState ? (pdu.state_key as UserId) : undefined
}

import { compileServerAcl, type ServerAcl } from '../../core/acl.ts'
import { createCache } from '../../core/cache.ts'
import { ProtocolError } from '../../core/errors.ts'
import { historyVisibilityOf, membershipOf } from '../../core/event/content.ts'
import { redact } from '../../core/event/redact.ts'
import type { RoomId, ServerName } from '../../core/ids.ts'
import { serverOf } from '../../core/ids.ts'
import { encodeCanonical } from '../../core/signing/canonical-json.ts'
import { getState } from '../../core/state/trie.ts'
import type { Reader } from '../../store/db/db.ts'
import { getJoinedUsers } from '../../store/rooms/rooms.ts'
import { opennessOf } from '../rooms/act/spaces/local-space.ts'
import type { ErasedUsers } from '../rooms/read/erased-users.ts'
import { cameBetween } from '../rooms/read/history-visibility.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import { type KeyValues, keyHistories } from '../rooms/room/key-history.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Lifetimes } from '../rooms/room/retention/lifetimes.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { wholeRoom } from '../rooms/room/whole-room.ts'

/** The one place that decides what another server may know of a room, and whether it may take part. */
export interface ServerAccess {
  /** Whether the room's server ACL allows a server to take part (client-server API, `m.room.server_acl`). */
  isAllowed(server: ServerName, room: Room): Promise<boolean>
  /**
   * Whether a server may take part in a room, as far as the ACL says. `refused`: the ACL denies it, and the server may know of the room.
   * If it may not know of the room, or we are not in the room, the answer is that the room is not `here`.
   */
  standing(server: ServerName, room: Room | undefined): Promise<'allowed' | 'refused' | 'not-here'>
  /**
   * Whether a server may know that a room exists. It may if one of its users is in the room or invited, if anybody may join, knock or
   * read, or if the room admits members of another room in which the server is.
   */
  mayKnowOf(server: ServerName, room: Room): Promise<boolean>
  /**
   * A room in which the asking server has a user. In a partial-state room the servers that the join's answer named count. Other servers
   * get the same answer whether the room exists or not.
   *
   * @throws ProtocolError `M_FORBIDDEN`
   */
  mustBeIn(server: ServerName, roomId: RoomId): Promise<Room>
  /** The same as a question, without an error. */
  isIn(server: ServerName, room: Room): Promise<boolean>
  /** The servers that have users in a room, with the numeric ids of these. */
  serversOf(room: Room): Promise<ReadonlyMap<ServerName, ReadonlySet<number>>>
  /** Those of a room's events that the server may see in full. */
  readable(server: ServerName, room: Room, events: readonly RoomEvent[]): Promise<readonly RoomEvent[]>
  /**
   * Events of a room that the server is in, as it may see them. Messages from a time when none of its users could read them are redacted,
   * and so are those of users who were erased before it joined, and those that are kept no longer. State is not redacted: the server may request the state at any event.
   */
  shownTo(server: ServerName, room: Room, events: readonly RoomEvent[]): Promise<string[]>
}

/** Total length in JSON of the server ACLs that are cached in compiled form. Each remote room may have one of 64 KiB. */
const ACL_CHARS_KEPT = 4_000_000

interface CompiledAcl {
  readonly acl: ServerAcl
  readonly chars: number
}

export function createServerAccess(parts: {
  readonly db: Reader
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly erasedUsers: Pick<ErasedUsers, 'veil'>
  readonly lifetimes: Pick<Lifetimes, 'current'> | undefined
}): ServerAccess {
  const { db, registry, erasedUsers, lifetimes } = parts
  const acls = createCache<number, CompiledAcl>(ACL_CHARS_KEPT, { sizeOf: ({ chars }) => chars })

  async function aclOf(room: Room): Promise<ServerAcl> {
    const event = await room.stateEvent('m.room.server_acl', '')
    if (event === undefined) return compileServerAcl(undefined)
    // A redacted ACL event has other content.
    const known = event.redactedBy === undefined ? acls.get(event.nid) : undefined
    if (known) return known.acl
    const acl = compileServerAcl(event.pdu.content)
    if (event.redactedBy === undefined) acls.set(event.nid, { acl, chars: event.json.length })
    return acl
  }

  const isAllowed = async (server: ServerName, room: Room) => (await aclOf(room)).allows(server)
  const serversOf = (room: Room) => room.servers.of(() => getJoinedUsers(db, room.nid))

  async function isIn(server: ServerName, room: Room): Promise<boolean> {
    // If no local user is in the room, what we know of it is out of date.
    if (room.localMembers.size === 0 || !(await isAllowed(server, room))) return false
    return isSaidToBeIn(server, room) || (await serversOf(room)).has(server)
  }

  function isSaidToBeIn(server: ServerName, { partialState }: Room): boolean {
    return partialState?.lacksMembers === true && partialState.servers.has(server)
  }

  /** Who may read messages of restricted visibility is known only when the members are. */
  async function asReadable(room: Room): Promise<Room> {
    if (!room.partialState?.lacksMembers) return room
    const visibility = historyVisibilityOf(await room.stateEvent('m.room.history_visibility', ''))
    return isForLaterReaders(visibility) ? room : wholeRoom(registry, room)
  }

  async function mayKnowOf(server: ServerName, room: Room): Promise<boolean> {
    if (room.localMembers.size === 0) return false
    if (isSaidToBeIn(server, room) || (await serversOf(room)).has(server)) return true
    const { isOpen, allowed } = await opennessOf(room)
    if (isOpen || (await isInvited(server, room))) return true
    for (const id of allowed) {
      const other = await registry.get(id)
      if (other && (await isIn(server, other))) return true
    }
    return false
  }

  /** All memberships that a server's users ever had in a room. */
  async function membersFrom(server: ServerName, room: Room): Promise<KeyValues[]> {
    const memberKeys = [...room.keys.ofType('m.room.member')].flatMap(([user, keyId]) =>
      serverOf(user) === server ? [keyId] : [],
    )
    return memberKeys.map(await keyHistories(parts, room, memberKeys))
  }

  /** Whether any of a server's users was in the room at an event, or joined between it and a stream position. */
  async function wasIn(server: ServerName, room: Room): Promise<(event: RoomEvent, position: number) => boolean> {
    const members = await membersFrom(server, room)
    return (event, position) =>
      members.some(
        (member) => membershipOf(member.at(event.pointBefore)) === 'join' || cameBetween(member, event, position),
      )
  }

  /** Which messages a server may read; undefined if it may read all of them, as in nearly every room. */
  async function readableBy(server: ServerName, room: Room): Promise<((event: RoomEvent) => boolean) | undefined> {
    const visibilityKey = room.keys.idOf('m.room.history_visibility', '')
    const visibilityOf = (await keyHistories(parts, room, [visibilityKey]))(visibilityKey)
    const isOpen = (event: RoomEvent | undefined) => isForLaterReaders(historyVisibilityOf(event))
    if (visibilityOf.events.every(isOpen)) return undefined
    const members = await membersFrom(server, room)
    return ({ stateChain: chain, stateSeq: seq }) => {
      const visibility = historyVisibilityOf(visibilityOf.at({ chain, seq }))
      if (isForLaterReaders(visibility)) return true
      const readers = visibility === 'invited' ? ['join', 'invite'] : ['join']
      return members.some((values) => readers.includes(membershipOf(values.at({ chain, seq }))))
    }
  }

  return {
    isAllowed,
    isIn,
    serversOf,
    mayKnowOf,
    async standing(server, room) {
      if (!room || room.localMembers.size === 0) return 'not-here'
      if (await isAllowed(server, room)) return 'allowed'
      return (await mayKnowOf(server, room)) ? 'refused' : 'not-here'
    },
    async mustBeIn(server, roomId) {
      const room = await registry.get(roomId)
      if (!room || !(await isIn(server, room))) {
        throw new ProtocolError('M_FORBIDDEN', 'Your server is not in this room.')
      }
      return asReadable(room)
    },
    async readable(server, room, events) {
      const isReadable = events.some(({ isState }) => !isState) ? await readableBy(server, room) : undefined
      return isReadable ? events.filter((event) => event.isState || isReadable(event)) : events
    },
    async shownTo(server, room, events) {
      const isReadable = events.some(({ isState }) => !isState) ? await readableBy(server, room) : undefined
      const messages = events.filter(({ isState }) => !isState)
      const current = lifetimes && new Set(await lifetimes.current(room, messages))
      const shown = await erasedUsers.veil(room, messages, () => wasIn(server, room))
      const jsonOf = new Map(shown.map((event) => [event.nid, event.json]))
      return events.map((event) =>
        event.isState || ((isReadable?.(event) ?? true) && (current?.has(event) ?? true))
          ? (jsonOf.get(event.nid) ?? event.json)
          : encodeCanonical(redact(room.version, event.pdu)),
      )
    },
  }
}

/** The error for a server that the room's ACL denies. */
export const shutOut = (server: ServerName): ProtocolError =>
  new ProtocolError('M_FORBIDDEN', `The access list of this room shuts ${server} out.`)

async function isInvited(server: ServerName, room: Room): Promise<boolean> {
  const nids = [...room.keys.ofType('m.room.member')].flatMap(([user, keyId]) =>
    serverOf(user) === server ? [getState(room.committed.state, keyId)] : [],
  )
  const members = await room.events(nids.filter((nid) => nid !== 0))
  return [...members.values()].some((member) => membershipOf(member) === 'invite')
}

function isForLaterReaders(visibility: string): boolean {
  return visibility === 'shared' || visibility === 'world_readable'
}

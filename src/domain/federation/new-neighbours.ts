import { type ServerName, serverOf } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { getOwnJoins } from '../../store/federation/federation-catch-up.ts'
import { deviceListVersion } from '../../store/keys/device-lists.ts'
import { getJoinedUsers } from '../../store/rooms/rooms.ts'
import type { Base } from '../base.ts'
import type { RemoteDeviceLists } from '../keys/device-lists.ts'
import { MAX_STICKY_SENT_AGAIN, STICKY_SENT_AFTER_MS } from '../limits/sticky-events.ts'
import { MAX_MEMBERS_SHARING_PRESENCE, MAX_ROOMS_READ_FOR_STRANGERS } from '../limits.ts'
import { serversToTell } from '../rooms/room/destinations.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { MembershipChange, Room } from '../rooms/room/room.ts'
import type { StickyEvents } from '../rooms/write/sticky-events.ts'
import { type Presence, type PresenceOf, presenceContent } from '../sync/presence.ts'
import type { UserRooms } from '../sync/user-rooms.ts'
import type { Outgoing } from './outgoing.ts'

/**
 * When a local user comes to share a room with another server's users, sends that server the user's device list and presence, and the
 * sticky events of our users in the room.
 */
export interface NewNeighbours {
  /** Processes membership changes right after their commit. */
  committed(room: Room, members: readonly MembershipChange[]): void
  /** Processes the joins after a position: the previous process may not have sent anything about them. */
  takeUp(position: number): Promise<void>
}

/** The most joins processed at a start: in the seconds before a crash there are no more. */
const MAX_TAKEN_UP = 1_000

const hasCome = ({ before, after }: MembershipChange): boolean => after === 'join' && before !== 'join'

export interface NewNeighbourParts {
  readonly base: Pick<Base, 'db' | 'clock' | 'log'>
  readonly roomBase: {
    readonly registry: Pick<RoomRegistry, 'peek' | 'getByNid'>
    readonly userRooms: UserRooms
    readonly events: Pick<EventCache, 'load'>
    readonly sticky: Pick<StickyEvents, 'isEmpty' | 'newest'>
  }
  readonly syncBase: { readonly presence: Pick<Presence, 'of'> }
  readonly sending: {
    readonly deviceListNews: Pick<RemoteDeviceLists, 'queue' | 'queued'>
    readonly outgoing: Pick<Outgoing, 'reaches' | 'again' | 'edu' | 'holdBack'>
  }
}

/**
 * A server that shared no room with a user has heard of no change of the user's devices. It gets the list's version, so that it fetches
 * the whole list. Delivery is not guaranteed: a client that encrypts for the user fetches the devices anyway.
 */
export function createNewNeighbours(parts: NewNeighbourParts): NewNeighbours {
  const { db, clock, log } = parts.base
  const { registry, userRooms, sticky } = parts.roomBase
  const { deviceListNews: deviceLists, outgoing } = parts.sending
  const presenceOf = parts.syncBase.presence.of
  const failed = (err: unknown) =>
    log.debug({ err }, 'servers that now share a room with a user were not sent all that they should know')
  const sendSticky = createStickySending(parts, failed)

  function tellPresence(servers: readonly ServerName[], users: Iterable<PresenceOf | undefined>): void {
    const push: JsonObject[] = []
    for (const presence of users) {
      if (presence === undefined || presence.state === 'offline') continue
      push.push({ user_id: presence.userId, ...presenceContent(presence, clock.now()) })
    }
    if (push.length > 0 && servers.length > 0) outgoing.edu(servers, { edu_type: 'm.presence', content: { push } })
  }

  const isSmall = ({ counts, partialState }: Room): boolean =>
    counts.join <= MAX_MEMBERS_SHARING_PRESENCE && !partialState?.lacksMembers

  async function ownCame(room: Room, { userNid, userId }: MembershipChange): Promise<void> {
    const servers = [...(await serversToTell(db, room))].filter(outgoing.reaches)
    if (servers.length === 0) return
    if (isSmall(room)) tellPresence(servers, [presenceOf(userId)])
    const strange = await strangersTo(userNid, room.nid, servers)
    if (strange.length === 0) return
    const isQueued = await db.tx(async (tx) => {
      const position = await deviceListVersion(tx, userNid)
      if (position > 0) await deviceLists.queue(tx, userNid, strange, { position, before: 0, devices: undefined })
      return position > 0
    })
    if (isQueued) deviceLists.queued(strange)
  }

  /** Those of some servers that share no other room with a user, as far as that can be found quickly. */
  async function strangersTo(userNid: number, roomNid: number, servers: readonly ServerName[]): Promise<ServerName[]> {
    const strange = new Set(servers)
    const since = ({ localMembers }: Room) => localMembers.get(userNid)?.since ?? 0
    const here = await registry.getByNid(roomNid)
    let left = MAX_ROOMS_READ_FOR_STRANGERS
    for (const [nid, { membership }] of await userRooms.of(userNid)) {
      if (nid === roomNid || membership !== 'join') continue
      if (strange.size === 0) break
      const room = registry.peek(nid) ?? (left-- > 0 ? await registry.getByNid(nid) : undefined)
      // If two rooms were joined one after the other, the first one brought the server.
      if (!room?.isShared || since(room) > since(here)) continue
      for (const server of await serversToTell(db, room)) strange.delete(server)
    }
    return [...strange]
  }

  /** Sends the presence of local users in a small room to servers that are new in it, and what is sticky in the room. */
  async function othersCame(room: Room, came: readonly MembershipChange[]): Promise<void> {
    const joined = await room.servers.of(() => getJoinedUsers(db, room.nid))
    const nids = new Set(came.map(({ userNid }) => userNid))
    const isFirst = (server: ServerName) => [...(joined.get(server) ?? [])].every((nid) => nids.has(nid))
    const servers = [...new Set(came.map(({ userId }) => serverOf(userId)))].filter(outgoing.reaches).filter(isFirst)
    if (isSmall(room)) {
      tellPresence(
        servers,
        [...room.localMembers.values()].map(({ userId }) => presenceOf(userId)),
      )
    }
    sendSticky(room.nid, servers)
  }

  async function tell(
    room: Room,
    own: readonly MembershipChange[],
    others: readonly MembershipChange[],
  ): Promise<void> {
    for (const member of own) await ownCame(room, member)
    // If a local user has only just joined the room, its other members are no news.
    const hasNews = isSmall(room) || (!sticky.isEmpty && sticky.newest(room.nid, 1).length > 0)
    if (own.length === 0 && others.length > 0 && room.localMembers.size > 0 && hasNews) await othersCame(room, others)
  }

  function committed(room: Room, members: readonly MembershipChange[]): void {
    if (members.length === 0 || !room.isShared) return
    const came = members.filter(hasCome)
    if (came.length === 0) return
    const own = came.filter(({ isLocal }) => isLocal)
    const others = came.filter(({ isLocal }) => !isLocal)
    const release = own.length === 0 ? () => {} : outgoing.holdBack(own[0]!.changedAt - 1)
    tell(room, own, others).catch(failed).finally(release)
  }

  return {
    committed,
    async takeUp(position) {
      const release = outgoing.holdBack(position)
      for (const { room_nid, user_nid, user_id, event_nid, at } of await getOwnJoins(db, position, MAX_TAKEN_UP)) {
        const room = await registry.getByNid(room_nid)
        const is = { userNid: user_nid, userId: user_id, isLocal: true, displayName: undefined }
        committed(room, [{ ...is, before: undefined, after: 'join', eventNid: event_nid, changedAt: at }])
      }
      release()
    },
  }
}

/**
 * Sends servers what of ours is sticky in a room, a while after their first user came into it: no join brings that (MSC4354, "Federation
 * behaviour"). Nobody minds an event that comes twice.
 */
function createStickySending({ roomBase, sending }: NewNeighbourParts, failed: (err: unknown) => void) {
  const { registry, events, sticky } = roomBase

  async function send(roomNid: number, servers: readonly ServerName[]): Promise<void> {
    const { localMembers } = await registry.getByNid(roomNid)
    const found = await events.load(sticky.newest(roomNid, MAX_STICKY_SENT_AGAIN))
    const own = [...found.values()].filter(({ senderNid }) => localMembers.has(senderNid))
    sending.outgoing.again(
      servers,
      own.sort((one, other) => one.nid - other.nid),
    )
  }

  return (roomNid: number, servers: readonly ServerName[]): void => {
    if (servers.length === 0 || sticky.newest(roomNid, 1).length === 0) return
    for (const ms of STICKY_SENT_AFTER_MS) setTimeout(() => void send(roomNid, servers).catch(failed), ms).unref()
  }
}

import type { ByteBudget } from '../../../core/byte-budget.ts'
import { ProtocolError } from '../../../core/errors.ts'
import { historyVisibilityOf, membershipOf } from '../../../core/event/content.ts'
import type { EventId, RoomId } from '../../../core/ids.ts'
import type { Reader } from '../../../store/db/db.ts'
import { isForgotten } from '../../../store/rooms/room-members.ts'
import { alwaysJoined, type MembershipAt } from '../room/client-event.ts'
import type { EventCache } from '../room/event-cache.ts'
import { mustBeMember, notInRoom } from '../room/not-in-room.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Lifetimes } from '../room/retention/lifetimes.ts'
import type { Room } from '../room/room.ts'
import type { Readable, RoomAccess } from '../room/room-access.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { Viewer } from '../room/viewer.ts'
import type { ErasedUsers } from './erased-users.ts'
import { createViewerHistories, type ViewerHistory } from './history-visibility.ts'
import { type IgnoredUsers, isIgnored } from './ignored-users.ts'

export interface AccessParts {
  readonly db: Reader
  readonly registry: Pick<RoomRegistry, 'get'>
  readonly events: EventCache
  readonly erasedUsers: Pick<ErasedUsers, 'veil' | 'isEmpty'>
  readonly ignoredUsers: Pick<IgnoredUsers, 'of'>
  readonly budget: ByteBudget
  /** Undefined where messages are kept for ever. */
  readonly lifetimes: Pick<Lifetimes, 'current'> | undefined
}

export function createRoomAccess(parts: AccessParts): RoomAccess {
  const { db, registry, events, erasedUsers, ignoredUsers, budget, lifetimes } = parts
  const histories = createViewerHistories({ db, events, budget })

  async function visibleTo(
    viewer: Viewer,
    room: Room,
    candidates: readonly RoomEvent[],
  ): Promise<readonly RoomEvent[]> {
    if (candidates.length === 0) return candidates
    const history = () => histories.of(room, viewer)
    const current = lifetimes ? await lifetimes.current(room, candidates) : candidates
    const allowed = (await seesAll(viewer, room, current)) ? current : await seenBy(history, current)
    const ignored = await ignoredUsers.of(viewer.userNid)
    const seen = ignored ? allowed.filter((event) => !isIgnored(event, ignored)) : allowed
    return erasedUsers.veil(room, seen, async () => (await history()).wasJoinedBy)
  }

  function seesAtOnce(viewer: Viewer, room: Room, of: readonly RoomEvent[]): boolean {
    if (lifetimes || !erasedUsers.isEmpty() || ignoredUsers.of(viewer.userNid) !== undefined) return false
    const since = room.localMembers.get(viewer.userNid)?.since
    if (since === undefined) return false
    if (areAllSince(since, room, of)) return true
    const nid = room.stateNid(room.committed.state, 'm.room.history_visibility', '')
    const setting = room.fact(nid)
    return (nid === 0 || setting !== undefined) && areAllSince(sharedSince(setting), room, of)
  }

  function membershipsAt(viewer: Viewer, room: Room, of: readonly RoomEvent[]): MembershipAt | Promise<MembershipAt> {
    const since = room.localMembers.get(viewer.userNid)?.since ?? Number.POSITIVE_INFINITY
    return of.every(({ streamPos }) => streamPos >= since) ? alwaysJoined : membershipsOf(viewer, room)
  }

  async function membershipsOf(viewer: Viewer, room: Room): Promise<MembershipAt> {
    return (await firstMembership(room, viewer)) ?? (await histories.of(room, viewer)).membershipAt
  }

  /** The membership of a viewer who had at most an invitation before their newest membership. This needs no history. */
  async function firstMembership(room: Room, { userId }: Viewer): Promise<MembershipAt | undefined> {
    const member = await room.stateEvent('m.room.member', userId)
    if (!member?.isInTimeline || !member.isOnTip || member.isHistory) return undefined
    const invite =
      member.replacesNid === undefined ? undefined : (await events.load([member.replacesNid])).get(member.replacesNid)
    if (invite?.replacesNid !== undefined || (member.replacesNid !== undefined && !invite?.isInTimeline))
      return undefined
    const [before, after] = [membershipOf(invite), membershipOf(member)]
    return ({ pos }) => (pos >= member.pos ? after : invite !== undefined && pos >= invite.pos ? before : 'leave')
  }

  /** What the viewer may read of a room; undefined when nothing. */
  async function admit(viewer: Viewer, room: Room): Promise<Readable | undefined> {
    const present = { room, departure: undefined, upTo: room.committed.pos, seesState: true }
    if (room.localMembers.has(viewer.userNid)) return present
    const isOpen = await isWorldReadable(room)
    const member = await room.stateEvent('m.room.member', viewer.userId)
    if (!member) return isOpen ? present : undefined
    const history = await histories.of(room, viewer)
    const { departure } = history
    if (departure && !(await isForgotten(db, viewer.userNid, room.nid))) {
      const readsOn = isOpen || membershipOf(member) === 'invite' || history.wasWorldReadableAfter(departure)
      return { room, departure, upTo: readsOn ? room.committed.pos : departure.pos, seesState: true }
    }
    if (isOpen) return present
    return membershipOf(member) === 'invite' ? { ...present, seesState: false } : undefined
  }

  async function mustReadTimeline(viewer: Viewer, roomId: RoomId): Promise<Readable> {
    const room = await registry.get(roomId)
    const readable = room && (await admit(viewer, room))
    if (!readable) throw notInRoom()
    return readable
  }

  async function findIn(viewer: Viewer, room: Room, eventId: EventId): Promise<RoomEvent | undefined> {
    const event = await events.getById(eventId)
    if (event?.roomNid !== room.nid || !event.isInTimeline) return undefined
    return (await visibleTo(viewer, room, [event]))[0]
  }

  return {
    visibleTo,
    seesAtOnce,
    membersSee: (room, of) => lifetimes === undefined && areOnTip(room, of) && of.every(showsNoOther),
    membershipsAt,
    mayShowUpTo: async (viewer, room, pos) => (await histories.of(room, viewer)).mayShowUpTo(pos),
    mustReadTimeline,
    async mustReadState(viewer, roomId) {
      const readable = await mustReadTimeline(viewer, roomId)
      if (!readable.seesState) throw notInRoom()
      return readable
    },
    async mustSee(viewer, roomId, eventId) {
      const readable = await mustReadTimeline(viewer, roomId)
      const event = await findIn(viewer, readable.room, eventId)
      if (!event) throw new ProtocolError('M_NOT_FOUND', 'There is no such event in this room for you to see.')
      return { ...readable, event }
    },
    async find(viewer, roomId, eventId) {
      const room = await registry.get(roomId)
      const readable = room && (await admit(viewer, room))
      const event = readable && (await findIn(viewer, room, eventId))
      return event && { ...readable, event }
    },
    async mustPeek(viewer, roomId) {
      const room = await registry.get(roomId)
      if (!room || !(room.localMembers.has(viewer.userNid) || (await isWorldReadable(room)))) throw notInRoom()
      return room
    },
    async mustBeInRoom(viewer, roomId) {
      return mustBeMember(await registry.get(roomId), viewer)
    },
    async anyMustBeInRoom(viewer, isOneOf, roomId) {
      const room = await registry.get(roomId)
      for (const { userId } of room?.localMembers.values() ?? []) if (isOneOf(userId)) return room!
      return mustBeMember(room, viewer)
    },
  }
}

async function seenBy(
  history: () => Promise<ViewerHistory>,
  events: readonly RoomEvent[],
): Promise<readonly RoomEvent[]> {
  const { sees } = await history()
  return events.filter(sees)
}

async function isWorldReadable(room: Room): Promise<boolean> {
  return historyVisibilityOf(await room.stateEvent('m.room.history_visibility', '')) === 'world_readable'
}

/**
 * The common case, decided without reading history: the viewer is in the room, and either joined before all of the events, or the room
 * shares its history and did so when they were sent.
 */
async function seesAll(viewer: Viewer, room: Room, events: readonly RoomEvent[]): Promise<boolean> {
  const member = room.localMembers.get(viewer.userNid)
  if (!member) return false
  if (areAllSince(member.since, room, events)) return true
  return areAllSince(sharedSince(await room.stateEvent('m.room.history_visibility', '')), room, events)
}

const areAllSince = (position: number, room: Room, events: readonly RoomEvent[]): boolean =>
  areOnTip(room, events) && events.every(({ streamPos }) => streamPos >= position)

/** Of what repeats the state before it, readers who were not there by then see less once its sender is erased. */
const showsNoOther = ({ replacesNid }: RoomEvent): boolean => replacesNid === undefined

/** Whether the state before each of these events was the room's current one by then. */
const areOnTip = ({ committed }: Room, events: readonly RoomEvent[]): boolean =>
  events.every((event) => event.pos > 0 && event.isOnTip && event.stateChain === committed.chain)

/** From which stream position on members see everything, also from before they joined. */
function sharedSince(setting: RoomEvent | undefined): number {
  const visibility = historyVisibilityOf(setting)
  if (visibility !== 'shared' && visibility !== 'world_readable') return Number.POSITIVE_INFINITY
  // An event without a place in the timeline does not say when it took effect.
  if (setting && !setting.isInTimeline) return Number.POSITIVE_INFINITY
  // Without an earlier setting, history was shared.
  return setting?.replacesNid === undefined ? 0 : setting.streamPos
}

import type { Logger } from 'pino'
import type { EventId } from '../../../core/ids.ts'
import type { SearchListener } from '../../search/search-signals.ts'
import type { Notifier } from '../../sync/notifier.ts'
import type { RecentChanges } from '../../sync/recent-changes.ts'
import type { Unread } from '../../sync/unread.ts'
import type { UserRooms } from '../../sync/user-rooms.ts'
import type { RoomAppservices } from '../room/appservices-of-room.ts'
import type { Checkpoints } from '../room/checkpoints.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { PartialStateRooms } from '../room/partial-state-rooms.ts'
import type { PushListener } from '../room/push-signals.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { MembershipChange, Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { PersisterParts } from './persister.ts'
import { relationTargets } from './relation-batch.ts'
import type { StickyAppeals } from './sticky-appeals.ts'
import type { StickyEvents } from './sticky-events.ts'
import { streamed, type Unit } from './unit.ts'

/** The callbacks that the persister calls. */
export type CommitListeners = Pick<PersisterParts, 'committed' | 'published' | 'refused' | 'missed'>

/** What holds rooms and their events in memory. */
export interface CommitMemory {
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly partialStateRooms: Pick<PartialStateRooms, 'changed' | 'resynced'>
  readonly userRooms: UserRooms
  readonly roomEvents: RecentChanges
  readonly roomMembers: RecentChanges
  readonly unread: Pick<Unread, 'appended' | 'redacted' | 'forgetAll'>
  readonly checkpoints: Pick<Checkpoints, 'consider'>
  readonly sticky: Pick<StickyEvents, 'committed' | 'missed'>
  readonly stickyAppeals: Pick<StickyAppeals, 'committed' | 'missed'>
  readonly directory: { redescribe(roomNid: number): void }
  readonly presence: {
    moved(user: Pick<MembershipChange, 'userNid' | 'userId'>, roomNid: number, isJoined: boolean): void
  }
  readonly typing: { stop(roomNid: number, userNid: number): void }
}

/** Who hears of each commit after memory is up to date, in this order. */
export interface CommitSubscribers {
  readonly guests: { committed(unit: Unit): void; missed(): void }
  readonly successions: { committed(unit: Unit): void }
  readonly outgoing: {
    committed(room: Room, events: readonly RoomEvent[]): void
    missed(position: number, after: number): void
  }
  readonly appservices: Pick<RoomAppservices, 'committed' | 'missed'>
  readonly newNeighbours: { committed(room: Room, members: readonly MembershipChange[]): void }
  readonly push: Pick<PushListener, 'committed' | 'missed'>
  readonly search: SearchListener
  readonly notifier: Pick<Notifier, 'moved' | 'wakeRoom' | 'wakeUsers' | 'missed'>
}

/** Applies each commit to everything in memory, and then passes it to all who hear of it. */
export function createCommitListeners(
  memory: CommitMemory,
  subscribers: CommitSubscribers,
  log: Logger,
): CommitListeners {
  const { registry, events, partialStateRooms, userRooms, roomEvents, roomMembers, unread, checkpoints, sticky } =
    memory
  const { stickyAppeals, directory, presence, typing } = memory
  const { guests, successions, outgoing, appservices, newNeighbours, push, search, notifier } = subscribers
  let wokenRooms = new Set<number>()
  let wokenUsers = new Set<number>()

  function takeRedactions({ room, redactions, after }: Unit): void {
    for (const { event, place } of redactions) {
      // Another redaction was committed meanwhile, and the first one stands.
      if (events.get(event.nid)?.redactedBy !== undefined) continue
      events.put(event)
      if (place) unread.redacted(place, after.pos)
      if (event.isState) directory.redescribe(room.nid)
    }
  }

  function takeMembers({ room, after, members }: Unit): void {
    for (const member of members) {
      room.recordMember(member)
      if (member.before !== member.after) roomMembers.record(room.nid, after.nid)
      if (!member.isLocal) presence.moved(member, room.nid, member.after === 'join')
      if (!member.isLocal) continue
      userRooms.changed(member.userNid, room.nid, {
        membership: member.after,
        eventNid: member.eventNid,
        changedAt: member.changedAt,
        forgotten: false,
      })
      wokenUsers.add(member.userNid)
      if (member.after !== 'join') typing.stop(room.nid, member.userNid)
    }
    partialStateRooms.changed(room, members)
  }

  function takeIn(unit: Unit): void {
    const { room } = unit
    const fresh = streamed(unit)
    room.settled(unit)
    room.advance(fresh, unit.changes, unit.after)
    registry.confirm(room)
    roomEvents.record(room.nid, unit.after.nid)
    events.related(relationTargets(unit))
    if (unit.redactions.length > 0) events.related(relationsRemoved(unit))
    for (const event of fresh) {
      // Whether events relate to history was not looked up.
      if (event.isHistory) event.markRelated()
      // The members of a large room that was just joined would displace what others read.
      if (event.standing !== 'outlier') events.put(event)
    }
    sticky.committed(unit)
    stickyAppeals.committed(unit)
    takeRedactions(unit)
    takeMembers(unit)
    for (const event of fresh) {
      if (event.isInTimeline && !event.isHistory)
        unread.appended(
          event,
          unit.unread.find(({ eventNid }) => eventNid === event.nid),
        )
    }
    checkpoints.consider(room)
    for (const resync of unit.resynced) {
      // The states in this copy of the room lack what the resync wrote behind them.
      registry.drop(room)
      partialStateRooms.resynced(resync)
    }
  }

  return {
    committed(unit) {
      takeIn(unit)
      guests.committed(unit)
      successions.committed(unit)
      outgoing.committed(unit.room, streamed(unit))
      appservices.committed(unit.room, streamed(unit), unit.members)
      newNeighbours.committed(unit.room, unit.members)
      push.committed(unit.room, streamed(unit), unit.members)
      search.committed(streamed(unit), ...redactedIn(unit))
      if (streamed(unit).some((event) => event.isInTimeline && !event.isHistory)) wokenRooms.add(unit.room.nid)
    },
    published() {
      notifier.moved()
      for (const roomNid of wokenRooms) notifier.wakeRoom(roomNid)
      notifier.wakeUsers([...wokenUsers])
      wokenRooms = new Set()
      wokenUsers = new Set()
    },
    refused: (room) => registry.drop(room),
    missed(position, after) {
      log.warn({ position }, 'a commit that was not answered had happened; what is in memory is read again')
      registry.forgetAll()
      events.forgetAll()
      roomEvents.forget(position)
      roomMembers.forget(position)
      userRooms.forgetAll()
      unread.forgetAll()
      sticky.missed()
      stickyAppeals.missed()
      outgoing.missed(position, after)
      appservices.missed(position)
      push.missed(position)
      search.missed()
      guests.missed()
      notifier.missed()
    },
  }
}

/** The events to which those related that a unit redacts. */
function relationsRemoved({ redactions }: Unit): EventId[] {
  return redactions.flatMap(({ relation }) => relation?.targetId ?? [])
}

/** The events that a unit redacts, and those of which it redacts an edit. */
function redactedIn({ redactions }: Unit): [RoomEvent[], EventId[]] {
  if (redactions.length === 0) return [[], []]
  const edited = redactions.flatMap(({ relation }) => (relation?.relType === 'm.replace' ? [relation.targetId] : []))
  return [redactions.map(({ event }) => event), edited]
}

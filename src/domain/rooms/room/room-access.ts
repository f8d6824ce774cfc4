import type { EventId, RoomId, UserId } from '../../../core/ids.ts'
import type { MembershipAt } from './client-event.ts'
import type { Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'
import type { Viewer } from './viewer.ts'

/** A room, and how much of it one reader may read. */
export interface Readable {
  readonly room: Room
  /** The event with which the reader left: they see the state at that event. Undefined for a reader who sees the current state. */
  readonly departure: RoomEvent | undefined
  /** The reader sees no event after this timeline position. */
  readonly upTo: number
  /**
   * The reader is or was in the room, or the room is world readable. An invited user sees only history that is visible to invited users.
   */
  readonly seesState: boolean
}

export interface Seen extends Readable {
  readonly event: RoomEvent
}

/**
 * The one place that decides whether a user may see an event or a room. Every reader calls it (client-server API, "Room History
 * Visibility").
 */
export interface RoomAccess {
  /** The events that the viewer may see, in the same order. An event is a copy if the viewer may no longer see all of it. */
  visibleTo(viewer: Viewer, room: Room, events: readonly RoomEvent[]): Promise<readonly RoomEvent[]>
  /** Whether memory is enough to say that the viewer may see all of these events, as they are. */
  seesAtOnce(viewer: Viewer, room: Room, events: readonly RoomEvent[]): boolean
  /** Whether all see all of these events, as they are, who ignore nobody and have been in the room since before them. */
  membersSee(room: Room, events: readonly RoomEvent[]): boolean
  /** The viewer's membership at each of a room's events. It costs nothing if the viewer was in the room before all of them. */
  membershipsAt(viewer: Viewer, room: Room, events: readonly RoomEvent[]): MembershipAt | Promise<MembershipAt>
  /** The highest timeline position, at most `pos`, that may hold something the viewer can see. */
  mayShowUpTo(viewer: Viewer, room: Room, pos: number): Promise<number | undefined>
  /**
   * An event of a room. This is the one check that an event belongs to the room in the request.
   *
   * @throws ProtocolError `M_FORBIDDEN` when the viewer may not read the room, `M_NOT_FOUND` when the viewer can see no such event in it
   */
  mustSee(viewer: Viewer, roomId: RoomId, eventId: EventId): Promise<Seen>
  /** Like `mustSee`, for callers that must not reveal whether the room exists: gives undefined instead of an error. */
  find(viewer: Viewer, roomId: RoomId, eventId: EventId): Promise<Seen | undefined>
  /** A room with history that the viewer may read. @throws ProtocolError `M_FORBIDDEN` */
  mustReadTimeline(viewer: Viewer, roomId: RoomId): Promise<Readable>
  /** A room whose state the viewer may read. @throws ProtocolError `M_FORBIDDEN` */
  mustReadState(viewer: Viewer, roomId: RoomId): Promise<Readable>
  /** A room whose current state the viewer may read: joined, or world readable. @throws ProtocolError `M_FORBIDDEN` */
  mustPeek(viewer: Viewer, roomId: RoomId): Promise<Room>
  /** A room that the viewer is joined to. @throws ProtocolError `M_FORBIDDEN` */
  mustBeInRoom(viewer: Viewer, roomId: RoomId): Promise<Room>
  /** The same, where it is enough that one of several users is in the room. @throws as `mustBeInRoom` */
  anyMustBeInRoom(viewer: Viewer, isOneOf: (userId: UserId) => boolean, roomId: RoomId): Promise<Room>
}

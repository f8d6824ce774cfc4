import type { EventId, RoomId, UserId } from '../../../core/ids.ts'
import type { MembershipAt } from './client-event.ts'
import type { Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'
import type { Viewer } from './viewer.ts'

/** A room as one reader may read it. */
export interface Readable {
  readonly room: Room
  /** The event with which the reader left: they read state as it was then. Undefined for who reads the present. */
  readonly departure: RoomEvent | undefined
  /** The reader sees no event after this timeline position. */
  readonly upTo: number
  /** In the room, was in it, or the room is open to the world. The merely invited see history alone, where it is open to them. */
  readonly seesState: boolean
}

export interface Seen extends Readable {
  readonly event: RoomEvent
}

/**
 * The one place that decides whether a user may see an event, or a room. Every reader asks here
 * (client-server API, "Room History Visibility").
 */
export interface RoomAccess {
  /** Those of a room's events that the viewer may see, in the same order. What is not for them to read any more is a copy. */
  visibleTo(viewer: Viewer, room: Room, events: readonly RoomEvent[]): Promise<readonly RoomEvent[]>
  /** The viewer's membership at each of a room's events. Costs nothing for who was in the room before all of them. */
  membershipsAt(viewer: Viewer, room: Room, events: readonly RoomEvent[]): MembershipAt | Promise<MembershipAt>
  /** The highest position of a room's timeline, up to one, at which there may be something for the viewer to see. */
  mayShowUpTo(viewer: Viewer, room: Room, pos: number): Promise<number | undefined>
  /**
   * An event of a room. The one check that an event is in the room that it was asked for in.
   *
   * @throws ProtocolError `M_FORBIDDEN` when the viewer may not read the room, `M_NOT_FOUND` when it has no such event for them
   */
  mustSee(viewer: Viewer, roomId: RoomId, eventId: EventId): Promise<Seen>
  /** The same for whoever tells strangers nothing, not even that the room exists. */
  find(viewer: Viewer, roomId: RoomId, eventId: EventId): Promise<Seen | undefined>
  /** A room whose history the viewer may read, as far as it goes. @throws ProtocolError `M_FORBIDDEN` */
  mustReadTimeline(viewer: Viewer, roomId: RoomId): Promise<Readable>
  /** A room whose state the viewer may read. @throws ProtocolError `M_FORBIDDEN` */
  mustReadState(viewer: Viewer, roomId: RoomId): Promise<Readable>
  /** A room whose present the viewer may read: joined, or open to the world. @throws ProtocolError `M_FORBIDDEN` */
  mustPeek(viewer: Viewer, roomId: RoomId): Promise<Room>
  /** A room that the viewer is joined to. @throws ProtocolError `M_FORBIDDEN` */
  mustBeInRoom(viewer: Viewer, roomId: RoomId): Promise<Room>
  /** The same where any of some users may be the one who is in the room. @throws as `mustBeInRoom` */
  anyMustBeInRoom(viewer: Viewer, isOneOf: (userId: UserId) => boolean, roomId: RoomId): Promise<Room>
}

import type { MembershipChange, Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'

/** News of rooms: hints, since everything can be read from the stream. */
export interface PushListener {
  /** Called right after a commit, in order. */
  committed(room: Room, events: readonly RoomEvent[], members: readonly MembershipChange[]): void
  /** Events up to a position were committed without a call of `committed`. */
  missed(position: number): void
  /** A user has read something in a room. */
  read(userNid: number, roomNid: number): void
  /** History of a room is going: less of it may be unread. */
  purged(room: Room): void
}

/** Made before rooms, and listened to by what is made after them: the pushers. */
export interface PushSignals extends PushListener {
  subscribe(listener: PushListener): void
}

export function createPushSignals(): PushSignals {
  let listener: PushListener | undefined
  return {
    committed: (room, events, members) => listener?.committed(room, events, members),
    missed: (position) => listener?.missed(position),
    read: (userNid, roomNid) => listener?.read(userNid, roomNid),
    purged: (room) => listener?.purged(room),
    subscribe(one) {
      listener = one
    },
  }
}

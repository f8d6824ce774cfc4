import type { MembershipChange, Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'

/** What rooms tell of: hints, since everything can be read from the stream. */
export interface PushHearer {
  /** Called right after a commit, in order. */
  committed(room: Room, events: readonly RoomEvent[], members: readonly MembershipChange[]): void
  /** Events up to a position were committed without a call of `committed`. */
  missed(position: number): void
  /** A user has read something in a room. */
  read(userNid: number, roomNid: number): void
}

/** Made before rooms, and heard by what is made after them: the pushers. */
export interface PushSignals extends PushHearer {
  hear(hearer: PushHearer): void
}

export function createPushSignals(): PushSignals {
  let hearer: PushHearer | undefined
  return {
    committed: (room, events, members) => hearer?.committed(room, events, members),
    missed: (position) => hearer?.missed(position),
    read: (userNid, roomNid) => hearer?.read(userNid, roomNid),
    hear(one) {
      hearer = one
    },
  }
}

import type { PushOutcome } from '../../core/push/default-rules.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'

/** An event of which a user is to be notified. All users with the same outcome share one. */
export interface Notice {
  readonly roomNid: number
  readonly eventNid: number
  /** The position in the event stream. */
  readonly position: number
  /** An invitation of the user to a room. */
  readonly isInvitation: boolean
  readonly outcome: PushOutcome
  /** When it was found, or when the event was sent, if that was read later. Milliseconds. */
  readonly at: number
}

/** An invitation of a local user. */
export interface InvitationNews {
  readonly userNid: number
  readonly eventNid: number
  readonly position: number
}

/** What happened in a room, to be evaluated. */
export interface RoomNews {
  readonly roomNid: number
  readonly events: readonly RoomEvent[]
  readonly invitations: readonly InvitationNews[]
  /** The highest stream position of both. */
  readonly upTo: number
}

import { CALL_RING, type PushOutcome } from '../../core/push/default-rules.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'

/** How much a notification matters. One that matters less never stands for one that matters more. */
export const WEIGHT = { silent: 0, encrypted: 1, sounds: 2, urgent: 3 } as const
export type Weight = (typeof WEIGHT)[keyof typeof WEIGHT]

/** Mentions and other highlights, calls and invitations are urgent. Whether an encrypted event is, only the phone can tell. */
export function weightOf(type: string, { highlight, sound }: PushOutcome, isInvitation: boolean): Weight {
  if (highlight || isInvitation || sound === CALL_RING) return WEIGHT.urgent
  if (sound !== undefined) return WEIGHT.sounds
  return type === 'm.room.encrypted' ? WEIGHT.encrypted : WEIGHT.silent
}

/** An event of which a user is to be notified. All users with the same outcome share one. */
export interface Notice {
  readonly roomNid: number
  readonly eventNid: number
  /** The position in the event stream. */
  readonly position: number
  /** An invitation of the user to a room. */
  readonly isInvitation: boolean
  readonly outcome: PushOutcome
  readonly weight: Weight
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

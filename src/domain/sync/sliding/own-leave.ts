import { hash } from 'node:crypto'
import type { JsonBytes } from '../../../core/json-bytes.ts'
import type { SlidingLook } from './look.ts'

/**
 * A leave of the user, as JSON, where no event says that they are out: state resolution took their membership away, or the room was removed
 * from this server. Clients of the earlier text learn of memberships from events alone.
 */
export function ownLeave({ by: { userId }, timeMs }: SlidingLook, roomId: string): string {
  const id = hash('sha256', `${roomId} ${userId} ${timeMs}`, 'base64url')
  return JSON.stringify({
    type: 'm.room.member',
    state_key: userId,
    sender: userId,
    content: { membership: 'leave' },
    event_id: `$${id}`,
    origin_server_ts: timeMs,
  })
}

/** Ends what is said of a room of which there is nothing to show: the user is out of it. The merged text says so by the membership. */
export function endWithLeave(out: JsonBytes, look: SlidingLook, roomId: string): JsonBytes {
  const { hasMembership } = look.sliding.shape
  return out.text(hasMembership ? '}' : `,"required_state":[${ownLeave(look, roomId)}]}`)
}

import type { JsonBytes } from '../../../core/json-bytes.ts'
import type { RoomEvent } from '../../rooms/room/room-event.ts'
import { isNewer } from '../token.ts'
import type { SlidingLook } from './look.ts'
import type { SentRoom } from './record.ts'
import type { WantedRoom } from './windows.ts'

/** What an answer says of a room. */
export interface RoomAnswer {
  readonly nid: number
  readonly roomId: string
  /** Undefined if the client has everything. */
  readonly json: JsonBytes | undefined
  /** What the client has with this answer. */
  readonly sent: SentRoom
  /** Whether the client begins with the room, or with its timeline. */
  readonly isBegun: boolean
  readonly timeline: readonly RoomEvent[]
  /** The ids of users whom it shows in a room that the user is in: of senders, of member events, and those after whom the room is named. */
  readonly people: readonly string[]
}

/** The client has the room up to the end of the look, as it wants it. */
export function sentNow(
  look: SlidingLook,
  { wish }: WantedRoom,
  roomId: string,
  timelineLimit = wish.timelineLimit,
): SentRoom {
  return { timelineLimit, required: wish.required, isDirect: look.direct.has(roomId), upTo: undefined }
}

/** Begins the object with what is said of every room. */
export function writeCommon(
  out: JsonBytes,
  { sliding: { shape } }: SlidingLook,
  { room, lists }: WantedRoom,
  bumpStamp: number,
): JsonBytes {
  out.text(`{"bump_stamp":${Math.max(0, bumpStamp)}`)
  if (!shape.hasMembership) return out
  out.text(`,"membership":"${room.isJoined ? 'join' : room.membership.membership}"`)
  return lists.length > 0 ? out.text(`,"lists":${JSON.stringify(lists)}`) : out
}

/** The number of events that came since the client's last request. They are the last ones. */
export function liveIn({ from }: SlidingLook, events: readonly RoomEvent[]): number {
  if (from === undefined) return 0
  return events.filter(({ streamPos }) => isNewer(streamPos, from.stream.events)).length
}

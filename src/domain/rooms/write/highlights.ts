import type { StateLookup } from '../../../core/auth/context.ts'
import { highlightsFor } from '../../../core/push/highlights.ts'
import type { HighlightWrite } from '../../../store/events/event-writes.ts'
import { powersOf } from '../../push/push-context.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'

/** The local members for whom an event is a highlight. */
export function highlightsOf(room: Room, event: RoomEvent, state: StateLookup): HighlightWrite[] {
  const { senderPower, powerToNotify } = powersOf(room, event.sender, state)
  const { userIds, nids } = room.mentionables()
  return highlightsFor(event.pdu, userIds, senderPower >= powerToNotify('room')).map((userId) => ({
    userNid: nids.get(userId)!,
    roomNid: room.nid,
    eventNid: event.nid,
  }))
}

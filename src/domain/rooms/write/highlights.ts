import type { StateLookup } from '../../../core/auth/context.ts'
import { readPowerLevels } from '../../../core/auth/power-levels.ts'
import { highlightsFor } from '../../../core/highlights.ts'
import type { HighlightWrite } from '../../../store/events/event-writes.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'

/** The local members for whom an event is a highlight. */
export function highlightsOf(room: Room, event: RoomEvent, state: StateLookup): HighlightWrite[] {
  const create = state('m.room.create', '')
  const levels = readPowerLevels(room.version, state('m.room.power_levels', '')?.content, create)
  const canNotifyRoom = levels.levelOf(event.sender) >= levels.toNotify('room')
  const { index, nids } = room.mentionables()
  return highlightsFor(event.pdu, index, canNotifyRoom).map((userId) => ({
    userNid: nids.get(userId)!,
    roomNid: room.nid,
    eventNid: event.nid,
  }))
}

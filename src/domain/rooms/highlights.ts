import type { HighlightWrite } from '../../store/event-batch.ts'
import type { StateReader } from './append.ts'
import type { Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'

export function highlightsOf(_room: Room, _event: RoomEvent, _state: StateReader): HighlightWrite[] {
  return []
}

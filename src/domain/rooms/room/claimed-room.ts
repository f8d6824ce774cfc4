import type { RoomId } from '../../../core/ids.ts'
import type { RoomVersion } from '../../../core/room-version.ts'

/** The room that an event says it belongs to. */
export interface ClaimedRoom {
  readonly id: RoomId
  readonly version: RoomVersion
}

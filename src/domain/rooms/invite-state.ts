import type { JsonObject } from '../../core/json.ts'
import { strippedState } from './client-event.ts'
import type { Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'

/** What an invitation shows of the room to somebody who is not in it. */
const INVITE_STATE = [
  'm.room.create',
  'm.room.join_rules',
  'm.room.canonical_alias',
  'm.room.name',
  'm.room.avatar',
  'm.room.topic',
  'm.room.encryption',
]

export async function inviteState(room: Room, state = room.committed.state): Promise<JsonObject[]> {
  const events = await Promise.all(INVITE_STATE.map((type) => room.stateEvent(type, '', state)))
  return events.filter((event): event is RoomEvent => event !== undefined).map(strippedState)
}

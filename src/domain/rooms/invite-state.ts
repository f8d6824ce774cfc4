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

/** As clients are shown it. */
export async function inviteState(room: Room): Promise<JsonObject[]> {
  return (await shownOf(room)).map(strippedState)
}

/** As other servers are given it, with an invitation or for a knock: whole events, which they can verify. */
export async function inviteStateEvents(room: Room): Promise<JsonObject[]> {
  return (await shownOf(room)).map(({ pdu }) => pdu as JsonObject)
}

async function shownOf(room: Room): Promise<RoomEvent[]> {
  const events = await Promise.all(INVITE_STATE.map((type) => room.stateEvent(type, '')))
  return events.filter((event): event is RoomEvent => event !== undefined)
}

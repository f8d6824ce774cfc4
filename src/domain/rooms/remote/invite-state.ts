import type { JsonObject } from '../../../core/json.ts'
import { strippedState } from '../room/client-event.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { withinBounds } from '../room/stripped-state.ts'

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

/** As clients are shown it. @param inviter whose invitation it is; nobody's for a knock */
export async function inviteState(room: Room, inviter: string | undefined): Promise<JsonObject[]> {
  return (await shownOf(room, inviter)).map(strippedState)
}

/** As other servers are given it, with an invitation or for a knock: whole events, which they can verify. @param inviter as above */
export async function inviteStateEvents(room: Room, inviter: string | undefined): Promise<JsonObject[]> {
  return (await shownOf(room, inviter)).map(({ pdu }) => pdu as JsonObject)
}

async function shownOf(room: Room, inviter: string | undefined): Promise<RoomEvent[]> {
  const told = INVITE_STATE.map((type) => room.stateEvent(type, ''))
  // By whom one is invited is shown by name.
  if (inviter !== undefined) told.push(room.stateEvent('m.room.member', inviter))
  const events = await Promise.all(told)
  const found = events.filter((event): event is RoomEvent => event !== undefined)
  const shown = new Set(withinBounds(found.map(({ pdu }) => pdu)))
  return found.filter(({ pdu }) => shown.has(pdu))
}

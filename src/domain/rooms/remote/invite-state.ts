import type { JsonObject } from '../../../core/json.ts'
import { strippedState } from '../room/client-event.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { withinBounds } from '../room/stripped-state.ts'

/** The state that an invitation shows to a user who is not in the room. */
const INVITE_STATE = [
  'm.room.create',
  'm.room.join_rules',
  'm.room.canonical_alias',
  'm.room.name',
  'm.room.avatar',
  'm.room.topic',
  'm.room.encryption',
]

/** The stripped state, as clients see it. @param inviter the user who invites; undefined for a knock */
export async function inviteState(room: Room, inviter: string | undefined): Promise<JsonObject[]> {
  return (await shownOf(room, inviter)).map(strippedState)
}

/** Whole events for other servers, with an invitation or for a knock, so that these can verify them. @param inviter as above */
export async function inviteStateEvents(room: Room, inviter: string | undefined): Promise<JsonObject[]> {
  return (await shownOf(room, inviter)).map(({ pdu }) => pdu as JsonObject)
}

async function shownOf(room: Room, inviter: string | undefined): Promise<RoomEvent[]> {
  const loading = INVITE_STATE.map((type) => room.stateEvent(type, ''))
  // Clients show the inviter's name.
  if (inviter !== undefined) loading.push(room.stateEvent('m.room.member', inviter))
  const events = await Promise.all(loading)
  const found = events.filter((event): event is RoomEvent => event !== undefined)
  const shown = new Set(withinBounds(found.map(({ pdu }) => pdu)))
  return found.filter(({ pdu }) => shown.has(pdu))
}

import { JsonBytes } from '../../core/json-bytes.ts'
import { strippedState } from '../rooms/client-event.ts'
import { inviteState } from '../rooms/membership.ts'
import type { Look, RoomNews, Section } from './look.ts'

/** A room that the user was invited to or knocked on: a few pieces of state by which to recognise it. */
export async function invitedSection(look: Look, news: RoomNews): Promise<Section | undefined> {
  const { sources, by, request } = look
  const room = await sources.registry.getByNid(news.roomNid)
  if (!request.filter.room.roomMatches(room.id)) return undefined
  const [state, member] = await Promise.all([inviteState(room), room.stateEvent('m.room.member', by.userId)])
  const events = member ? [...state, strippedState(member)] : state
  const name = news.membership.membership === 'knock' ? 'knock_state' : 'invite_state'
  return { roomId: room.id, json: new JsonBytes().text(`{"${name}":{"events":${JSON.stringify(events)}}}`) }
}

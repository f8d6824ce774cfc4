import type { UserId } from '../../core/ids.ts'
import { writeJson } from '../../core/large-integers.ts'
import { getStrippedState } from '../../store/events/stripped-state.ts'
import { inviteState } from '../rooms/remote/invite-state.ts'
import { strippedState } from '../rooms/room/client-event.ts'
import type { Room } from '../rooms/room/room.ts'
import type { Look, RoomNews, Section } from './look.ts'

/** The stripped state and the membership. For a room that this server is not in, the stripped state came with the invitation. */
export async function invitedState({ sources, by }: Look, room: Room, eventNid: number) {
  const member = (await sources.events.load([eventNid])).get(eventNid)
  if (member?.standing === 'outlier') return [await getStrippedState(sources.db, member.id), member] as const
  const own = await room.stateEvent('m.room.member', by.userId)
  return [await inviteState(room, own?.sender === by.userId ? undefined : own?.sender), own] as const
}

/** Whether the user wants to see invitations of a sender. */
export async function isInvitationShown({ sources, by, ignored }: Look, sender: UserId): Promise<boolean> {
  if (ignored?.has(sender)) return false
  return (await sources.invitePermission.verdict(sender, by.userId)) === 'allow'
}

/** A room that the user was invited to or knocked on: some state by which to recognise it. */
export async function invitedSection(look: Look, news: RoomNews): Promise<Section | undefined> {
  const { sources, request } = look
  const room = await sources.registry.getByNid(news.roomNid)
  if (!request.filter.room.roomMatches(room.id)) return undefined
  const [state, member] = await invitedState(look, room, news.membership.eventNid)
  if (member && news.membership.membership === 'invite' && !(await isInvitationShown(look, member.sender)))
    return undefined
  const events = member ? [...state, strippedState(member)] : state
  const name = news.membership.membership === 'knock' ? 'knock_state' : 'invite_state'
  const json = `{"${name}":{"events":${writeJson(events)}}}`
  return { roomId: room.id, write: (out) => void out.text(json) }
}

import { type Membership, membershipOf } from '../../../core/event/content.ts'
import type { RoomId, UserId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import { wholeRoom } from '../room/whole-room.ts'
import type { Draft } from '../write/draft.ts'

/** The member event by which a local user changes a membership. @param reason why, in the user's words */
export function memberDraft(by: Requester, target: UserId, content: JsonObject, reason: string | undefined): Draft {
  return {
    type: 'm.room.member',
    stateKey: target,
    content: reason === undefined ? content : { ...content, reason },
    sender: by.userId,
    senderNid: by.userNid,
  }
}

/** A user's membership in a room, with all that is queued to be written. */
export async function membershipIn(room: Room, userId: UserId): Promise<Membership> {
  return membershipOf(await room.stateEvent('m.room.member', userId, room.pending.state))
}

/** Whether a room has a member event of a user, whatever it says. */
export async function wasMember(room: Room, userId: UserId): Promise<boolean> {
  return (await room.stateEvent('m.room.member', userId, room.pending.state)) !== undefined
}

/** In a room of partial state, whoever wants to do something about a member who is not known there yet waits for the resync. */
export async function untilMemberKnown(
  registry: Pick<RoomRegistry, 'get' | 'getByNid'>,
  roomId: RoomId,
  userId: UserId,
): Promise<void> {
  const room = await registry.get(roomId)
  if (room?.partialState?.lacksMembers && !(await wasMember(room, userId))) await wholeRoom(registry, room)
}

import { type Membership, membershipOf } from '../../../core/event/content.ts'
import type { RoomId, UserId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import { wholeRoom } from '../room/whole-room.ts'
import type { Draft } from '../write/draft.ts'

/** The member event with which a local user changes a membership. @param reason in the user's words */
export function memberDraft(by: Requester, target: UserId, content: JsonObject, reason: string | undefined): Draft {
  return {
    type: 'm.room.member',
    stateKey: target,
    content: reason === undefined ? content : { ...content, reason },
    sender: by.userId,
    senderNid: by.userNid,
  }
}

/** A user's membership in a room, including events that are not written yet. */
export async function membershipIn(room: Room, userId: UserId): Promise<Membership> {
  return membershipOf(await room.stateEvent('m.room.member', userId, room.pending.state))
}

/** Whether a room has a member event of a user, of any membership. */
export async function wasMember(room: Room, userId: UserId): Promise<boolean> {
  return (await room.stateEvent('m.room.member', userId, room.pending.state)) !== undefined
}

/** In a room with partial state, an action on a member who is not known yet waits for the resync. */
export async function untilMemberKnown(
  registry: Pick<RoomRegistry, 'get' | 'getByNid'>,
  roomId: RoomId,
  userId: UserId,
): Promise<void> {
  const room = await registry.get(roomId)
  if (room?.partialState?.lacksMembers && !(await wasMember(room, userId))) await wholeRoom(registry, room)
}

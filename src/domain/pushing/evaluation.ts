import type { PushOutcome } from '../../core/push/default-rules.ts'
import type { Clock } from '../clock.ts'
import type { PushedUser, PushRules } from '../push/rules.ts'
import type { Restores } from '../restores.ts'
import type { InvitePermission } from '../rooms/act/invite-permission.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomAccess } from '../rooms/room/room-access.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { type InvitationNews, type Notice, weightOf } from './notice.ts'

/** A notice, and the users that it is for. */
export interface Notified<User extends PushedUser = PushedUser> {
  readonly notice: Notice
  readonly users: readonly User[]
}

/** Who is notified of what, by each user's push rules. */
export interface Evaluation {
  /** The notices of an event for some joined members of its room. Own events never notify. */
  ofEvent<User extends PushedUser>(
    room: Room,
    event: RoomEvent,
    users: readonly User[],
    at?: number,
  ): Promise<readonly Notified<User>[]>
  /** The notice of an invitation, if the invited user's rules want one. */
  ofInvitation(roomNid: number, invitation: InvitationNews, user: PushedUser): Promise<Notice | undefined>
}

export function createEvaluation(parts: {
  readonly clock: Clock
  readonly pushRules: Pick<PushRules, 'outcomes' | 'evaluate'>
  readonly registry: Pick<RoomRegistry, 'getByNid'>
  readonly events: Pick<EventCache, 'get' | 'load'>
  readonly access: Pick<RoomAccess, 'membershipsAt'>
  readonly invitePermission: Pick<InvitePermission, 'verdict'>
  readonly restores?: Pick<Restores, 'restoredAt'>
}): Evaluation {
  const { clock, pushRules, registry, events, access, invitePermission } = parts
  /** Events from before a restore are fetched back from others after it. Their readers were notified then. */
  const oldBefore = parts.restores?.restoredAt ?? 0

  /** Whether a user was in the room when the event was sent. History that they got to see by joining notifies nobody. */
  async function wasIn(room: Room, user: PushedUser, event: RoomEvent): Promise<boolean> {
    const member = room.localMembers.get(user.userNid)
    if (!member) return false
    if (member.since <= event.streamPos && event.isOnTip && event.stateChain === room.committed.chain) return true
    return (await access.membershipsAt(user, room, [event]))(event) === 'join'
  }

  /** Groups those who are notified by what the event is to them. Most were in the room for all to see; the others are asked for. */
  async function group<User extends PushedUser>(
    room: Room,
    event: RoomEvent,
    users: readonly User[],
  ): Promise<ReadonlyMap<PushOutcome, readonly User[]>> {
    const outcomeOf = await pushRules.outcomes(users, room, event)
    const isSimple = event.isOnTip && event.stateChain === room.committed.chain
    const groups = new Map<PushOutcome, User[]>()
    const add = (outcome: PushOutcome, user: User) => {
      const group = groups.get(outcome)
      if (group) group.push(user)
      else groups.set(outcome, [user])
    }
    const doubtful: (readonly [PushOutcome, User])[] = []
    for (const user of users) {
      if (user.userNid === event.senderNid) continue
      const outcome = outcomeOf(user)
      if (!outcome.notify) continue
      const since = isSimple ? room.localMembers.get(user.userNid)?.since : undefined
      if (since !== undefined && since <= event.streamPos) add(outcome, user)
      else doubtful.push([outcome, user])
    }
    for (const [outcome, user] of doubtful) if (await wasIn(room, user, event)) add(outcome, user)
    return groups
  }

  return {
    async ofEvent(room, event, users, at = clock.now()) {
      if (users.length === 0 || event.ts < oldBefore) return []
      const about = { position: event.streamPos, isInvitation: false, at }
      return [...(await group(room, event, users))].map(([outcome, users]) => ({
        notice: noticeOf(event, outcome, about),
        users,
      }))
    },

    async ofInvitation(roomNid, { eventNid, position }, user) {
      const room = await registry.getByNid(roomNid)
      const event = events.get(eventNid) ?? (await events.load([eventNid])).get(eventNid)
      if (!event || (await invitePermission.verdict(event.sender, user.userId)) !== 'allow') return undefined
      const outcome = await pushRules.evaluate(user, room, event)
      return outcome.notify ? noticeOf(event, outcome, { position, isInvitation: true, at: clock.now() }) : undefined
    },
  }
}

function noticeOf(
  { roomNid, nid, type }: RoomEvent,
  outcome: PushOutcome,
  { position, isInvitation, at }: Pick<Notice, 'position' | 'isInvitation' | 'at'>,
): Notice {
  return { roomNid, eventNid: nid, position, isInvitation, outcome, weight: weightOf(type, outcome, isInvitation), at }
}

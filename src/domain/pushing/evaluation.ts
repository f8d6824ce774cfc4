import { groupBy } from '../../core/group-by.ts'
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
export interface Notified {
  readonly notice: Notice
  readonly userNids: readonly number[]
}

/** Who is notified of what, by each user's push rules. */
export interface Evaluation {
  /** The notices of an event for some joined members of its room. Own events never notify. */
  ofEvent(room: Room, event: RoomEvent, users: readonly PushedUser[], at?: number): Promise<readonly Notified[]>
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

  async function present(room: Room, users: readonly PushedUser[], event: RoomEvent): Promise<PushedUser[]> {
    const isSimple = event.isOnTip && event.stateChain === room.committed.chain
    const found: PushedUser[] = []
    for (const user of users) {
      const since = room.localMembers.get(user.userNid)?.since ?? Number.POSITIVE_INFINITY
      if ((isSimple && since <= event.streamPos) || (await wasIn(room, user, event))) found.push(user)
    }
    return found
  }

  return {
    async ofEvent(room, event, users, at = clock.now()) {
      const others = users.filter(({ userNid }) => userNid !== event.senderNid)
      if (others.length === 0 || event.ts < oldBefore) return []
      const outcomes = await pushRules.outcomes(others, room, event)
      const wanting = others.filter(({ userNid }) => outcomes.get(userNid)!.notify)
      const reached = wanting.length === 0 ? [] : await present(room, wanting, event)
      const byOutcome = groupBy(reached, ({ userNid }) => outcomes.get(userNid)!)
      return [...byOutcome].map(([outcome, group]) => ({
        notice: noticeOf(event, outcome, { position: event.streamPos, isInvitation: false, at }),
        userNids: group.map(({ userNid }) => userNid),
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

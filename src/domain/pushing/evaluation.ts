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

/** The users of a list, told apart by whether they may have rules of their own. */
interface Crowd<User> {
  /** Of the rules of all. */
  readonly version: number
  readonly plain: readonly User[]
  readonly own: readonly User[]
  /** Since when all of the plain ones are in the room: a position of the stream. */
  readonly since: number
}

/** Shorter lists are gone through each time. */
const MIN_CROWD = 32

export function createEvaluation(parts: {
  readonly clock: Clock
  readonly pushRules: Pick<PushRules, 'outcomes' | 'evaluate' | 'hasOwn' | 'version'>
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

  const crowds = new WeakMap<readonly PushedUser[], Crowd<PushedUser>>()

  /** Tells those with rules of their own apart, once for as long as the members of a room and their rules stay the same. */
  function crowdOf<User extends PushedUser>(room: Room, users: readonly User[]): Crowd<User> {
    const version = pushRules.version()
    const known = crowds.get(users) as Crowd<User> | undefined
    if (known?.version === version) return known
    const crowd = { version, plain: [] as User[], own: [] as User[], since: 0 }
    for (const user of users) {
      if (pushRules.hasOwn(user.userNid)) crowd.own.push(user)
      else {
        crowd.plain.push(user)
        crowd.since = Math.max(crowd.since, room.localMembers.get(user.userNid)?.since ?? Number.POSITIVE_INFINITY)
      }
    }
    if (users.length >= MIN_CROWD) crowds.set(users, crowd)
    return crowd
  }

  /** Groups those who are notified by what the event is to them. */
  async function group<User extends PushedUser>(
    room: Room,
    event: RoomEvent,
    users: readonly User[],
  ): Promise<(readonly [PushOutcome, readonly User[]])[]> {
    const { version, plain, own, since } = crowdOf(room, users)
    const outcomes = await pushRules.outcomes(own, room, event)
    const isSimple = event.isOnTip && event.stateChain === room.committed.chain
    const groups = new Map<PushOutcome, User[]>()
    const add = (outcome: PushOutcome, user: User) => {
      const group = groups.get(outcome)
      if (group) group.push(user)
      else groups.set(outcome, [user])
    }
    const doubtful: (readonly [PushOutcome, User])[] = []
    const look = (user: User, outcome: PushOutcome) => {
      if (!outcome.notify || user.userNid === event.senderNid) return
      const since = isSimple ? room.localMembers.get(user.userNid)?.since : undefined
      if (since !== undefined && since <= event.streamPos) add(outcome, user)
      else doubtful.push([outcome, user])
    }
    for (const [place, user] of own.entries()) look(user, outcomes.list[place]!)
    // Nearly always, it is the same to all who have changed no rules, and all of them were there.
    const { outcome, named } = outcomes.default
    const isAlike = named !== undefined && isSimple && since <= event.streamPos && version === pushRules.version()
    const isOther = (user: User) => !isAlike || user.userNid === event.senderNid || named.has(user.userId)
    const others = plain.filter(isOther)
    for (const user of others) look(user, outcomes.of(user))
    for (const [outcome, user] of doubtful) if (await wasIn(room, user, event)) add(outcome, user)
    if (!isAlike || !outcome.notify || others.length === plain.length) return [...groups]
    return [...groups, [outcome, others.length === 0 ? plain : plain.filter((user) => !isOther(user))]]
  }

  return {
    async ofEvent(room, event, users, at = clock.now()) {
      if (users.length === 0 || event.ts < oldBefore) return []
      const about = { position: event.streamPos, isInvitation: false, at }
      return (await group(room, event, users)).map(([outcome, users]) => ({
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

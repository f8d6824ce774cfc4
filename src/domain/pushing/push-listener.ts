import type { PushListener } from '../rooms/room/push-signals.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { MembershipChange, Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { Audience } from './audience.ts'
import type { Badges } from './badges.ts'
import type { Evaluation } from './evaluation.ts'
import type { RoomNews } from './notice.ts'
import type { PushStream } from './push-stream.ts'
import type { PushUser, PushUsers } from './push-users.ts'

export interface PushListenerParts {
  readonly pushUsers: Pick<PushUsers, 'users' | 'countsChanged'>
  readonly audience: Audience<PushUser>
  readonly badges: Badges
  readonly stream: Pick<PushStream, 'add' | 'reached' | 'missed'>
  /** The stream went on. */
  soon(): void
}

/** Takes what rooms tell. Commits that concern nobody with a pusher cost nearly nothing. */
export function createPushListener({ pushUsers, audience, badges, stream, soon }: PushListenerParts): PushListener {
  const { users } = pushUsers

  function newsOf(room: Room, all: readonly RoomEvent[], members: readonly MembershipChange[]): RoomNews | undefined {
    const invitations = members.flatMap(({ userNid, before, after, eventNid, changedAt }) =>
      after === 'invite' && before !== 'invite' && users.has(userNid)
        ? [{ userNid, eventNid, position: changedAt }]
        : [],
    )
    const isHeard = audience.of(room).length > 0
    const events = isHeard ? all.filter(({ isInTimeline, isHistory }) => isInTimeline && !isHistory) : []
    if (events.length + invitations.length === 0) return undefined
    const upTo = Math.max(...[...events.map(({ streamPos }) => streamPos), ...invitations.map((one) => one.position)])
    return { roomNid: room.nid, events, invitations, upTo }
  }

  return {
    committed(room, events, members) {
      if (users.size > 0) {
        audience.changed(room, members)
        for (const { userNid, before, after } of members) if (before !== after) badges.forget(userNid)
        const news = newsOf(room, events, members)
        if (news) stream.add(news)
      }
      let upTo = 0
      for (const { streamPos } of events) upTo = Math.max(upTo, streamPos)
      stream.reached(upTo)
      if (users.size > 0) soon()
    },
    missed(position) {
      audience.forgetAll()
      badges.forgetAll()
      stream.missed(position)
    },
    read(userNid, roomNid) {
      if (!users.has(userNid)) return
      badges.changed(userNid, roomNid)
      pushUsers.countsChanged(userNid, true)
    },
    purged(room) {
      if (users.size === 0) return
      for (const { userNid } of audience.of(room)) {
        if (!badges.mayHaveUnread(userNid, room.nid)) continue
        badges.changed(userNid, room.nid)
        pushUsers.countsChanged(userNid, false)
      }
    },
  }
}

/** Evaluates the news of a room, and queues the notices for the pushers. */
export function createSpreading(parts: {
  readonly registry: Pick<RoomRegistry, 'peekAlive' | 'getByNid'>
  readonly pushUsers: Pick<PushUsers, 'users' | 'countsChanged'>
  readonly audience: Pick<Audience<PushUser>, 'of'>
  readonly badges: Pick<Badges, 'changed' | 'wasUnread' | 'forget'>
  readonly evaluation: Evaluation
}): (news: RoomNews) => Promise<void> {
  const { registry, pushUsers, audience, badges, evaluation } = parts
  const { users } = pushUsers

  async function spread(room: Room, event: RoomEvent): Promise<void> {
    const { senderNid } = event
    // Sending is reading.
    if (badges.wasUnread(senderNid, room.nid)) {
      badges.changed(senderNid, room.nid)
      pushUsers.countsChanged(senderNid, true)
    }
    for (const { notice, users: notified } of await evaluation.ofEvent(room, event, audience.of(room))) {
      for (const { userNid, queues } of notified) {
        let isNew = false
        for (const queue of queues.values()) if (!queue.offer(notice)) isNew = true
        // Otherwise, its turn comes, and it is counted then.
        if (isNew) badges.changed(userNid, room.nid)
      }
    }
  }

  return async ({ roomNid, events, invitations }) => {
    const room = registry.peekAlive(roomNid) ?? (await registry.getByNid(roomNid).catch(() => undefined))
    // A room that was removed meanwhile notifies nobody.
    if (!room) return
    for (const event of events) await spread(room, event)
    for (const invitation of invitations) {
      const user = users.get(invitation.userNid)
      if (!user) continue
      const notice = await evaluation.ofInvitation(roomNid, invitation, user)
      badges.forget(user.userNid)
      if (notice) for (const queue of user.queues.values()) queue.offer(notice)
    }
  }
}

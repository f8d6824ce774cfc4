import { setTimeout as pause } from 'node:timers/promises'
import type { PushGatewayClient } from '../../outbound/push-gateway.ts'
import { getGateways, type PusherRow, pushedPosition, removePusher } from '../../store/accounts/pushers.ts'
import type { HomeserverBase } from '../base.ts'
import type { LifecyclePart } from '../lifecycle.ts'
import { MAX_ALL_NOTICES_IN_MEMORY } from '../limits/pushers.ts'
import type { PushLevels } from '../measures/level-metrics.ts'
import type { PushMetrics } from '../measures/work-metrics.ts'
import type { Pushers } from '../pushers/pushers.ts'
import type { Unsubscribing } from '../pushers/unsubscribing.ts'
import type { RoomAccess } from '../rooms/room/room-access.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { RoomBase } from '../rooms/room-base-services.ts'
import { createAudience } from './audience.ts'
import { createBadges } from './badges.ts'
import { createEvaluation } from './evaluation.ts'
import { Gateways } from './gateways.ts'
import { MailQueue } from './mail-queue.ts'
import { createMailTurns } from './mail-turns.ts'
import { createMissedReader } from './missed-notices.ts'
import type { Notice } from './notice.ts'
import { createNotificationBodies } from './notification-body.ts'
import { createPushListener, createSpreading } from './push-listener.ts'
import { createPushRecord } from './push-record.ts'
import { createPushStream } from './push-stream.ts'
import { createPushUsers } from './push-users.ts'
import { PusherQueue } from './pusher-queue.ts'
import { createRoomWords } from './room-words.ts'
import { createUnreadMails } from './unread-mail.ts'
import { createUnreadRooms } from './unread-rooms.ts'

export interface PushServiceParts {
  readonly base: Pick<
    HomeserverBase,
    'config' | 'db' | 'clock' | 'random' | 'log' | 'metrics' | 'sessions' | 'messenger' | 'restores'
  > & {
    readonly outbound: { readonly pushGateways: PushGatewayClient }
  }
  readonly roomBase: Pick<
    RoomBase,
    'registry' | 'events' | 'userRooms' | 'unread' | 'pushRules' | 'pushSignals' | 'ignoredUsers' | 'invitePermission'
  >
  readonly rooms: { readonly access: RoomAccess; position(): number }
  readonly accounts: {
    readonly pushers: Pick<Pushers, 'onChange'>
    readonly unsubscribing: Pick<Unsubscribing, 'tokenFor'>
  }
}

/** Requests that take longer are sent again by the next process. */
const FAREWELL_MS = 2_000

/** What sends notifications, as a part that runs and as the metrics read it. */
export interface PushServices extends LifecyclePart {
  levels(): PushLevels
}

/** Wires what sends notifications to push gateways and by mail. */
export function createPushServices(parts: PushServiceParts): PushServices {
  const { config, db, clock, random, log, metrics, sessions, outbound } = parts.base
  const { registry, events, userRooms, unread, pushRules, ignoredUsers } = parts.roomBase
  const unreadRooms = createUnreadRooms({ db, registry, unread, userRooms })
  const badges = createBadges({ userRooms, events, ignoredUsers, unreadRooms })
  ignoredUsers.onChange(badges.forget)
  const evaluation = createEvaluation({
    clock,
    pushRules,
    registry,
    events,
    access: parts.rooms.access,
    invitePermission: parts.roomBase.invitePermission,
    restores: parts.base.restores,
  })
  const readMissed = createMissedReader({ db, clock, events, registry, userRooms, unreadRooms, unread, evaluation })
  const gateways = new Gateways({ clock, random })
  const wordsOf = createRoomWords({ db, registry })
  const bodies = createNotificationBodies({ registry, wordsOf })
  const places = createPlaces()
  const wanted = createWanted(parts.roomBase)
  const mails = createMailTurns({ clock })
  const evaluated = () => stream.position()
  const pushUsers = createPushUsers({
    db,
    log,
    evaluated,
    usersChanged: () => audience.forgetAll(),
    open(row, lags) {
      const target = row.kind === 'email' ? new MailQueue(mailParts, row, lags) : new PusherQueue(queueParts, row, lags)
      record.changed(target)
      return target
    },
  })
  const queueParts = {
    ...{ clock, random, log, bodies, evaluated, readMissed },
    wanted,
    badge: badges.of,
    countAgain(userNid: number, roomNids: readonly number[]) {
      for (const roomNid of roomNids) badges.changed(userNid, roomNid)
    },
    notify: timed(outbound.pushGateways.notify, metrics.push),
    takePlace: places.take,
    freePlaces: places.free,
    ready: (queue: PusherQueue) => gateways.ready(queue),
    changed: (queue: PusherQueue) => record.changed(queue),
    async rejected(queue: PusherQueue) {
      pushUsers.remove(queue)
      await db.tx((tx) => removePusher(tx, queue.row))
    },
  }
  const { messenger } = parts.base
  const { unsubscribing } = parts.accounts
  const mailParts = {
    ...{ clock, random, log, evaluated, waits: mails.waits },
    send: createUnreadMails({ config, db, wordsOf, messenger, unsubscribing, readMissed, wanted }),
    changed: (queue: MailQueue) => record.changed(queue),
  }
  const audience = createAudience(pushUsers.users)
  const handOn = createSpreading({ registry, pushUsers, audience, badges, evaluation })
  const stream = createPushStream({ db, events, log, handOn })
  const record = createPushRecord({ db, clock, log, gateways, position: stream.position })
  parts.accounts.pushers.onChange(pushUsers.changed)
  sessions.onForget((userNid) => {
    if (pushUsers.users.has(userNid)) pushUsers.changed(userNid)
  })

  return {
    name: 'notifications',
    levels: () => ({ gateways: gateways.use, notices: places.taken(), unevaluated: stream.behind() }),
    async start() {
      gateways.start(await getGateways(db))
      const rows = await pushUsers.load()
      const current = parts.rooms.position()
      parts.roomBase.pushSignals.subscribe(
        createPushListener({ pushUsers, audience, badges, stream, soon: record.soon }),
      )
      stream.start(beginning(rows, await pushedPosition(db), current), Math.max(current, parts.rooms.position()))
      pushUsers.wake()
    },
    async stop() {
      pushUsers.close()
      gateways.freeze()
      await stream.close()
      await Promise.race([
        Promise.all([gateways.close(), mails.close()]),
        pause(FAREWELL_MS, undefined, { ref: false }),
      ])
      await record.close()
    },
  }
}

/** Notifies, and has the time counted that it took. */
function timed(notify: PushGatewayClient['notify'], { asked }: PushMetrics): PushGatewayClient['notify'] {
  return async (url, body) => {
    const begun = performance.now()
    const answer = await notify(url, body)
    asked(answer.kind, (performance.now() - begun) / 1000)
    return answer
  }
}

/** Where the stream must be read from: where the previous process ended, unless all pushers are newer or lag. */
function beginning(rows: readonly PusherRow[], saved: number | undefined, current: number): number {
  const positions = rows.filter(({ lags }) => !lags).map(({ position }) => position)
  return Math.min(current, Math.max(saved ?? 0, Math.min(current, ...positions)))
}

/** Counts the notices in memory. */
function createPlaces() {
  let taken = 0
  return {
    take(): boolean {
      if (taken >= MAX_ALL_NOTICES_IN_MEMORY) return false
      taken += 1
      return true
    },
    free(count: number): void {
      taken = Math.max(0, taken - count)
    },
    taken: () => taken,
  }
}

/** The event of a notice, unless it was read, redacted or removed meanwhile, or the user left the room. */
function createWanted({
  registry,
  events,
  userRooms,
  unread,
  ignoredUsers,
}: Pick<RoomBase, 'registry' | 'events' | 'userRooms' | 'unread' | 'ignoredUsers'>) {
  async function isWanted(userNid: number, { roomNid, isInvitation }: Notice, event: RoomEvent): Promise<boolean> {
    if (isInvitation) return (await userRooms.of(userNid)).get(roomNid)?.membership === 'invite'
    const room = registry.peekAlive(roomNid) ?? (await registry.getByNid(roomNid).catch(() => undefined))
    return room?.localMembers.has(userNid) === true && !(await unread.hasRead(userNid, event))
  }

  async function look(userNid: number, notice: Notice): Promise<RoomEvent | undefined> {
    const { eventNid } = notice
    const event = events.get(eventNid) ?? (await events.load([eventNid])).get(eventNid)
    if (!event || event.redactedBy !== undefined) return undefined
    if ((await ignoredUsers.of(userNid))?.has(event.sender)) return undefined
    return (await isWanted(userNid, notice, event)) ? event : undefined
  }

  return (userNid: number, notice: Notice): RoomEvent | undefined | Promise<RoomEvent | undefined> => {
    const room = notice.isInvitation ? undefined : registry.peekAlive(notice.roomNid)
    const event = room && events.get(notice.eventNid)
    if (!room || !event || ignoredUsers.ignores(userNid)) return look(userNid, notice)
    if (event.redactedBy !== undefined || !room.localMembers.has(userNid)) return undefined
    const hasRead = unread.hasRead(userNid, event)
    if (typeof hasRead === 'boolean') return hasRead ? undefined : event
    return hasRead.then((isRead) => (isRead ? undefined : event))
  }
}

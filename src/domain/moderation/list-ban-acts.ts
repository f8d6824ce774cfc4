import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { membershipOf } from '../../core/event/content.ts'
import type { BanRule, Bans } from '../../core/event/policy-rules.ts'
import { serverOf, type UserId } from '../../core/ids.ts'
import { findAccount } from '../../store/accounts/accounts.ts'
import type { Database } from '../../store/db/db.ts'
import {
  countListBans,
  deleteListBan,
  insertListBan,
  type ListBan,
  type Present,
  setListBanEvent,
} from '../../store/rooms/list-bans.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Audit } from '../admin/audit.ts'
import type { Clock } from '../clock.ts'
import { MAX_LIST_BANS_PER_HOUR } from '../limits/moderation.ts'
import type { Rooms } from '../rooms/act/rooms.ts'
import { powerLevelsOf } from '../rooms/room/power.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'

/** What is done in a room because of a policy list. */
export interface ListBanActs {
  /** The rule that bans a user, by name or by server. */
  ruleOf(bans: Bans, user: UserId): BanRule | undefined
  /** Bans somebody, if the moderator may. False when enough people were banned for this hour. */
  ban(by: Requester, one: Present, rule: BanRule): Promise<boolean>
  /** Ends a ban whose rule has ended, unless somebody banned the user again since, in whatever name. */
  unban(by: Requester, one: ListBan): Promise<void>
}

export interface ListBanActParts {
  readonly config: Pick<Config, 'server_name'>
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly registry: Pick<RoomRegistry, 'get'>
  readonly rooms: Pick<Rooms, 'ban' | 'unban'>
  readonly audit: Pick<Audit, 'record'>
}

const HOUR_MS = 3_600_000
export const PRESENT: ReadonlySet<string> = new Set(['join', 'invite', 'knock'])

export function createListBanActs(parts: ListBanActParts): ListBanActs {
  const { db, clock, log, registry, rooms, audit } = parts
  const { server_name: own } = parts.config
  let [hourBegan, inHour] = [Number.NEGATIVE_INFINITY, 0]

  function ruleOf(bans: Bans, user: UserId): BanRule | undefined {
    const server = serverOf(user)
    return bans.of('user', user) ?? (server === own ? undefined : bans.of('server', server))
  }

  /** Bans whose rules have ended since count too: a list whose writers change their minds must not fill rooms. */
  async function isEnough(): Promise<boolean> {
    const now = clock.now()
    if (now - hourBegan >= HOUR_MS) [hourBegan, inHour] = [now, 0]
    return inHour >= MAX_LIST_BANS_PER_HOUR || (await countListBans(db, now - HOUR_MS)) >= MAX_LIST_BANS_PER_HOUR
  }

  /** Whether the moderator may ban a user from a room. */
  async function mayBan(by: Requester, { room_id: roomId, user_id: user }: Present): Promise<boolean> {
    const room = await registry.get(roomId)
    if (user === by.userId || !room?.localMembers.has(by.userNid)) return false
    const levels = await powerLevelsOf(room)
    const level = levels.levelOf(by.userId)
    if (level < levels.ban || level <= levels.levelOf(user)) return false
    if (!PRESENT.has(membershipOf(await room.stateEvent('m.room.member', user)))) return false
    return serverOf(user) !== own || (await findAccount(db, user))?.is_admin !== true
  }

  /** A refusal of the room concerns that room alone. */
  async function recorded(act: string, one: Present, work: () => Promise<void>): Promise<boolean> {
    try {
      await audit.record({ actor: 'server', act, target: `${one.user_id} ${one.room_id}` }, work)
      return true
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.status >= 500) throw error
      log.info({ act, room: one.room_id, user: one.user_id, reason: error.message }, 'a room refused it')
      return false
    }
  }

  async function ban(by: Requester, one: Present, rule: BanRule): Promise<boolean> {
    if (!(await mayBan(by, one))) return true
    if (await isEnough()) {
      log.warn({ atMost: MAX_LIST_BANS_PER_HOUR }, 'policy lists put no more people out of rooms in this hour')
      return false
    }
    inHour++
    // First, so that whatever happens in between, the end of the rule finds the ban.
    await db.tx((tx) => insertListBan(tx, one, clock.now()))
    const details = rule.reason === '' ? {} : { reason: rule.reason }
    const act = 'ban from a room whom a policy list bans'
    const isDone = await recorded(act, one, () => rooms.ban(by, one.room_id, one.user_id, details))
    const member = isDone ? await memberOf(one) : undefined
    await db.tx((tx) => (isBanBy(by, member) ? setListBanEvent(tx, one, member.id) : deleteListBan(tx, one)))
    return true
  }

  const memberOf = async (one: Present): Promise<RoomEvent | undefined> =>
    (await registry.get(one.room_id))?.stateEvent('m.room.member', one.user_id)

  async function unban(by: Requester, one: ListBan): Promise<void> {
    const member = await memberOf(one)
    // A person who uses the moderator's account bans in the same name, and the account may have been another one.
    if (one.event_id === null ? isBanBy(by, member) : one.event_id === member?.id) {
      const act = 'end a ban whose policy rule has ended'
      await recorded(act, one, () => rooms.unban(by, one.room_id, one.user_id, {}))
    }
    await db.tx((tx) => deleteListBan(tx, one))
  }

  return { ruleOf, ban, unban }
}

const isBanBy = (by: Requester, member: RoomEvent | undefined): member is RoomEvent =>
  membershipOf(member) === 'ban' && member?.sender === by.userId

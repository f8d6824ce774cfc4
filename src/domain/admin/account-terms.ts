import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import { lockExpired, openKeys, setValidity } from '../../store/accounts/account-terms.ts'
import { countJoinedRooms, countSentInvites } from '../../store/accounts/user-activity.ts'
import type { Database } from '../../store/db/db.ts'
import { crossSigningKeysOf } from '../../store/keys/cross-signing-keys.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { Clock } from '../clock.ts'
import type { Users } from '../users.ts'
import { activeAccount } from './local-account.ts'

/** For how long accounts are valid, and what operators ask about a user. Functions throw as those of `UserDesk`. */
export interface AccountTerms {
  /**
   * Makes an account valid until a time, and unlocks it if its time was over. After that time it is locked.
   *
   * @param until milliseconds; undefined: ninety days from now
   * @returns until when
   * @throws ProtocolError `M_FORBIDDEN` for an administrator
   */
  renew(userId: UserId, until: number | undefined): Promise<number>
  /** Locks the accounts whose time is over. Returns how many. */
  lockExpired(): Promise<number>
  /** Calls the listener when an account may be over at once. */
  onWake(listener: () => void): void
  /**
   * Lets a user replace their cross-signing keys without authentication for ten minutes. @returns until when
   * @throws ProtocolError `M_NOT_FOUND` for a user without such keys
   */
  openKeys(userId: UserId): Promise<number>
  /** Of a user of any server, as far as this one knows. @param since milliseconds */
  sentInvites(userId: UserId, since: number): Promise<number>
  /** As `sentInvites`. */
  joinedRooms(userId: UserId, since: number): Promise<number>
}

const VALID_MS = 90 * 24 * 3_600_000
const KEYS_OPEN_MS = 10 * 60_000
const LOCKED_AT_ONCE = 500

export function createAccountTerms(deps: {
  readonly config: Pick<Config, 'server_name'>
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly sessions: Pick<Sessions, 'forget'>
  readonly users: Pick<Users, 'find'>
}): AccountTerms {
  const { config, db, clock, log, sessions, users } = deps
  const patient = { query: db.scan }
  let wake = (): void => {}

  return {
    async renew(userId, until = clock.now() + VALID_MS) {
      const { user_nid, is_admin } = await activeAccount(db, userId, config.server_name)
      if (is_admin) throw new ProtocolError('M_FORBIDDEN', `${userId} is an administrator: such accounts do not end.`)
      await db.tx((tx) => setValidity(tx, user_nid, until, clock.now()))
      sessions.forget(user_nid)
      if (until <= clock.now()) wake()
      return until
    },
    async lockExpired() {
      let total = 0
      for (let locked = LOCKED_AT_ONCE; locked === LOCKED_AT_ONCE; total += locked) {
        const ended = await db.tx((tx) => lockExpired(tx, clock.now(), LOCKED_AT_ONCE))
        for (const { user_nid, user_id } of ended) {
          sessions.forget(user_nid)
          log.info({ user: user_id }, 'an account is locked, because its time is over')
        }
        locked = ended.length
      }
      return total
    },
    onWake(listener) {
      wake = listener
    },
    async openKeys(userId) {
      const { user_nid } = await activeAccount(db, userId, config.server_name)
      const keys = await crossSigningKeysOf(db, [user_nid])
      if (!keys.some(({ usage }) => usage === 'master')) {
        throw new ProtocolError('M_NOT_FOUND', `${userId} has no cross-signing keys: the first ones need no proof.`)
      }
      const until = clock.now() + KEYS_OPEN_MS
      await db.tx((tx) => openKeys(tx, user_nid, until))
      return until
    },
    async sentInvites(userId, since) {
      const userNid = await users.find(userId)
      return userNid === undefined ? 0 : countSentInvites(patient, userNid, since)
    },
    async joinedRooms(userId, since) {
      const userNid = await users.find(userId)
      return userNid === undefined ? 0 : countJoinedRooms(patient, { userId, userNid }, since)
    },
  }
}

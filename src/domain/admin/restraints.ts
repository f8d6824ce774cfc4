import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import { setShadowBan } from '../../store/accounts/account-terms.ts'
import { type AccountRow, restrainAccount } from '../../store/accounts/accounts.ts'
import type { Database } from '../../store/db/db.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { ShadowBans } from '../moderation/shadow-bans.ts'
import { localAccount } from './local-account.ts'
import type { Operator } from './operator.ts'

export interface Restraint {
  /** All its sessions are refused until it is unlocked. They work again after that. */
  readonly isLocked: boolean
  /** The user may read, and may write to nobody. */
  readonly isSuspended: boolean
}

/**
 * Locks and suspends accounts (client-server API, "Account locking", "Account suspension"). Functions throw `M_INVALID_PARAM` for a
 * remote user, `M_NOT_FOUND` if there is no active account, `M_FORBIDDEN` for an administrator's account.
 */
export interface Restraints {
  get(userId: UserId): Promise<Restraint>
  /** What the user sends from the next request on is shown to nobody else, and they are not told. */
  setShadowBan(by: Operator, userId: UserId, isBanned: boolean): Promise<void>
  /** Omitted parts stay as they are. It takes effect with the next request. */
  set(by: Operator, userId: UserId, wish: Partial<Restraint>): Promise<void>
}

export function createRestraints(deps: {
  readonly config: Pick<Config, 'server_name'>
  readonly db: Database
  readonly sessions: Pick<Sessions, 'forget'>
  readonly shadowBans: Pick<ShadowBans, 'changed'>
}): Restraints {
  const { config, db, sessions, shadowBans } = deps

  async function subject(userId: UserId): Promise<AccountRow> {
    const account = await localAccount(db, userId, config.server_name)
    if (account.deactivated_at !== null) throw ended(userId)
    if (account.is_admin) {
      throw new ProtocolError('M_FORBIDDEN', `${userId} is an administrator: take that away first.`)
    }
    return account
  }

  return {
    async get(userId) {
      const { is_locked: isLocked, is_suspended: isSuspended } = await subject(userId)
      return { isLocked, isSuspended }
    },
    async setShadowBan(by, userId, isBanned) {
      if (by.requester?.userId === userId) throw new ProtocolError('M_FORBIDDEN', 'This is your own account.')
      const { user_nid } = await subject(userId)
      if (!(await db.tx((tx) => setShadowBan(tx, user_nid, isBanned)))) throw ended(userId)
      shadowBans.changed(user_nid, isBanned)
    },
    async set(by, userId, wish) {
      if (by.requester?.userId === userId) throw new ProtocolError('M_FORBIDDEN', 'This is your own account.')
      const { user_nid } = await subject(userId)
      if (!(await db.tx((tx) => restrainAccount(tx, user_nid, wish)))) throw ended(userId)
      sessions.forget(user_nid)
    },
  }
}

function ended(userId: UserId): ProtocolError {
  return new ProtocolError('M_NOT_FOUND', `There is no account ${userId} any more.`)
}

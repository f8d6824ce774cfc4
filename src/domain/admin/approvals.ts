import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { decideApproval, listWaiting } from '../../store/accounts/approvals.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import type { Deactivation } from '../accounts/deactivation.ts'
import type { Sessions } from '../accounts/sessions.ts'
import { localAccount } from './local-account.ts'

/** The accounts that wait until an operator has let them in (`registration.approval`). Functions throw as those of `UserDesk`. */
export interface Approvals {
  list(page: { readonly from: number; readonly limit: number }): Promise<JsonObject>
  /** Lets somebody in. Of two operators at once, the first one decides. @throws ProtocolError `M_UNKNOWN` (409) if the account does not wait */
  approve(userId: UserId): Promise<void>
  /** Ends the account; its name stays taken. @throws as `approve` */
  refuse(userId: UserId): Promise<void>
}

export function createApprovals(deps: {
  readonly config: Pick<Config, 'server_name'>
  readonly db: Database
  readonly sessions: Pick<Sessions, 'forget'>
  readonly deactivation: Pick<Deactivation, 'deactivate'>
}): Approvals {
  const { config, db, sessions, deactivation } = deps

  async function decide(tx: Tx, userId: UserId, userNid: number, isLetIn: boolean): Promise<void> {
    if (await decideApproval(tx, userNid, isLetIn)) return
    throw new ProtocolError('M_UNKNOWN', `${userId} does not wait: somebody has decided already.`, { status: 409 })
  }

  return {
    async list({ from, limit }) {
      const { waiting, total } = await listWaiting(db, { from, limit })
      const next = from + waiting.length
      const accounts = waiting.map(({ user_id, created_at }) => ({ user_id, creation_ts: created_at }))
      return { accounts, total, ...(next < total && waiting.length > 0 && { next_token: next }) }
    },
    async approve(userId) {
      const { user_nid } = await localAccount(db, userId, config.server_name)
      await db.tx((tx) => decide(tx, userId, user_nid, true))
      sessions.forget(user_nid)
    },
    async refuse(userId) {
      const { user_nid: userNid } = await localAccount(db, userId, config.server_name)
      // One transaction: an account that nobody waits for and that has not ended would be locked for ever.
      const meanwhile = (tx: Tx) => decide(tx, userId, userNid, false)
      await deactivation.deactivate({ userId, userNid }, { erase: false, idServer: undefined, meanwhile })
    },
  }
}

import { ProtocolError } from '../../core/errors.ts'
import { type AdminActRow, insertAdminAct, listAdminActs, setAdminActOutcome } from '../../store/accounts/admin-acts.ts'
import type { Database } from '../../store/db/db.ts'
import type { Clock } from '../clock.ts'

/** Who does what to whom. It contains no secret. */
export interface Act {
  readonly actor: string
  readonly act: string
  readonly target: string
}

/** The log of operators' actions. */
export interface Audit {
  /** Runs an action and logs it: before it begins, and with its result afterwards. If it cannot be logged, it does not run. */
  record<T>(act: Act, work: () => Promise<T> | T): Promise<T>
  /** Newest first. `before` is the `act_nid` of the last entry of the previous page. */
  list(query: {
    readonly before: number | undefined
    readonly limit: number | undefined
    readonly actor: string | undefined
    readonly target: string | undefined
  }): Promise<AdminActRow[]>
}

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1_000
const MAX_TARGET_CHARS = 512

export function createAudit({ db, clock }: { readonly db: Database; readonly clock: Clock }): Audit {
  return {
    async record({ actor, act, target }, work) {
      const kept = target.slice(0, MAX_TARGET_CHARS)
      const begun = { at: clock.now(), actor, act, target: kept, outcome: 'begun' }
      const actNid = await db.tx((tx) => insertAdminAct(tx, begun))
      try {
        const result = await work()
        await db.tx((tx) => setAdminActOutcome(tx, actNid, 'done'))
        return result
      } catch (error) {
        const outcome = error instanceof ProtocolError ? error.errcode : 'M_UNKNOWN'
        await db.tx((tx) => setAdminActOutcome(tx, actNid, outcome))
        throw error
      }
    },
    list({ before, limit, actor, target }) {
      return listAdminActs(db, {
        before: before ?? Number.MAX_SAFE_INTEGER,
        limit: Math.min(Math.max(limit ?? DEFAULT_LIMIT, 1), MAX_LIMIT),
        actor,
        target,
      })
    },
  }
}

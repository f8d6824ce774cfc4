import type { UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { lockAccount } from '../../store/accounts/accounts.ts'
import { findDevice } from '../../store/accounts/devices.ts'
import { findUiaOutcome, insertUiaOutcome } from '../../store/accounts/uia-sessions.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import { UIA_SESSION_MS } from '../limits.ts'
import { type Issued, issueToken, type TokenDeps } from './issue-token.ts'
import type { Sessions } from './sessions.ts'
import { bodyHash, storedId } from './uia-seal.ts'

/** The result of a registration: its account, and the device that it logged in. */
export interface FinishedRegistration {
  readonly userNid: number
  readonly userId: UserId
  readonly deviceId?: string
}

/** A registration request in a session: the session's id, and the body without `auth`. */
export interface RegistrationCall {
  readonly session: string
  readonly body: JsonObject
}

/**
 * Registrations whose answer may have been lost. A client that sends the session again, alone or with the same body, gets the same user
 * and a new token for its device. This works only while the device exists, so a client that was logged out stays out.
 */
export interface FinishedRegistrations {
  /** Runs in the transaction that makes the account. */
  record(tx: Tx, call: RegistrationCall, finished: FinishedRegistration): Promise<void>
  find(call: RegistrationCall): Promise<FinishedRegistration | undefined>
  repeat(finished: FinishedRegistration, canRefresh: boolean | undefined): Promise<Issued | undefined>
}

export function createFinishedRegistrations(
  deps: TokenDeps & { readonly db: Database; readonly sessions: Pick<Sessions, 'forget'> },
): FinishedRegistrations {
  const { db, clock, sessions } = deps

  async function isInUse(tx: Tx, { userNid, deviceId }: FinishedRegistration): Promise<boolean> {
    const account = await lockAccount(tx, userNid)
    if (account === undefined || account.deactivated_at !== null || account.is_locked) return false
    return deviceId === undefined || (await findDevice(tx, userNid, deviceId)) !== undefined
  }

  return {
    async record(tx, { session, body }, finished) {
      const row = { sessionId: storedId(session), bodyHash: bodyHash(session, body), createdAt: clock.now() }
      await insertUiaOutcome(tx, { ...row, operation: 'POST C/register', outcome: JSON.stringify(finished) })
    },

    async find({ session, body }) {
      const row = await findUiaOutcome(db, storedId(session), clock.now() - UIA_SESSION_MS)
      const isSame = Object.keys(body).length === 0 || row?.body_hash.equals(bodyHash(session, body))
      if (row === undefined || !isSame) return undefined
      const finished = JSON.parse(row.outcome) as FinishedRegistration
      return (await db.tx((tx) => isInUse(tx, finished))) ? finished : undefined
    },

    async repeat(finished, canRefresh) {
      const { userNid, deviceId } = finished
      if (deviceId === undefined) return undefined
      const issued = await db.tx(async (tx) => {
        if (!(await isInUse(tx, finished))) return undefined
        return issueToken(tx, deps, userNid, { deviceId, displayName: undefined, canRefresh })
      })
      sessions.forget(userNid, deviceId)
      return issued
    },
  }
}

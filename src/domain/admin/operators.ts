import { ProtocolError } from '../../core/errors.ts'
import { findAccount } from '../../store/accounts/accounts.ts'
import { deleteOperatorToken, insertOperatorToken, isOperatorToken } from '../../store/accounts/operator-tokens.ts'
import type { Database } from '../../store/db/db.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Clock, Random } from '../clock.ts'
import { hashToken, tokenKind } from '../opaque-tokens.ts'
import type { Operator } from './operator.ts'

/** Says who may administer this server. */
export interface Operators {
  /**
   * The operator of a token; a user's is their access token. Undefined for an unknown token.
   * @throws ProtocolError `M_FORBIDDEN` for a user who may not administer
   */
  find(token: string): Promise<Operator | undefined>
  /** Whether an account may administer. It is read each time, so a withdrawn right counts at once. */
  isAdmin(requester: Requester): Promise<boolean>
}

/** For `hearth` beside a running server: it proves its right because it could write this token into the database. */
const OPERATOR_TOKENS = tokenKind('hearthop_')
const OPERATOR_TOKEN_MS = 60 * 60 * 1000

export const COMMAND_LINE: Operator = { name: 'command line', requester: undefined }

export function createOperators(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly sessions: { find(token: string): Requester | undefined | Promise<Requester | undefined> }
}): Operators {
  const { db, clock, sessions } = deps

  async function isAdmin({ userId }: Requester): Promise<boolean> {
    const account = await findAccount(db, userId)
    return account?.is_admin === true && account.deactivated_at === null && !account.is_locked
  }

  return {
    isAdmin,
    async find(token) {
      if (OPERATOR_TOKENS.recognises(token)) {
        return (await isOperatorToken(db, hashToken(token), clock.now())) ? COMMAND_LINE : undefined
      }
      const requester = await sessions.find(token)
      if (requester === undefined) return undefined
      if (await isAdmin(requester)) return { name: requester.userId, requester }
      throw new ProtocolError('M_FORBIDDEN', 'This is for administrators of this server.')
    },
  }
}

/** A token for the command line. It ends with `end`, or an hour later. */
export async function issueOperatorToken(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
}): Promise<{ readonly token: string; end(): Promise<void> }> {
  const { db, clock, random } = deps
  const token = OPERATOR_TOKENS.make(random)
  await db.tx((tx) => insertOperatorToken(tx, hashToken(token), clock.now() + OPERATOR_TOKEN_MS))
  return { token, end: () => db.tx((tx) => deleteOperatorToken(tx, hashToken(token))) }
}

import { createPublicKey, type KeyObject } from 'node:crypto'
import type { JWTPayload } from 'jose'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import type { UiaStage } from '../accounts/interactive-auth.ts'
import type { Clock } from '../clock.ts'
import { RECENT_PROOF_MS } from '../limits/oauth.ts'
import type { ExternalAccounts } from './external-accounts.ts'
import type { OutsideAccounts } from './outside-accounts.ts'

/** Sign-in by tokens that a service of the operator makes (`org.matrix.login.jwt`). */
export interface JwtLogins {
  readonly isEnabled: boolean
  /**
   * Whose token this is.
   *
   * @throws ProtocolError `M_FORBIDDEN` for a token that is not good, and what `OutsideAccounts` throws
   */
  ownerOf(token: string): Promise<UserId>
  /**
   * Whom a token names, and when it was made, in milliseconds, if it says so. No account is made.
   *
   * @throws ProtocolError `M_FORBIDDEN` for a token that is not good
   */
  look(token: string): Promise<{ readonly subject: string; readonly madeAt: number | undefined }>
  /**
   * The stage `org.matrix.login.jwt`: the requester shows a token that was made for them just now.
   *
   * @throws ProtocolError `M_FORBIDDEN` for another token, `M_MISSING_PARAM`
   */
  readonly prove: UiaStage['prove']
}

/** Where the account of somebody who signs in by tokens is linked to. */
export const JWT_SOURCE = 'login:jwt'
export const JWT_STAGE = 'org.matrix.login.jwt'
/** Clocks may differ by this much. */
const TOLERANCE_SECONDS = 30
const MAX_TOKEN_CHARS = 16_384

export function createJwtLogins(deps: {
  readonly config: Pick<Config, 'jwt'>
  readonly clock: Clock
  readonly accountOf: OutsideAccounts
  readonly accounts: Pick<ExternalAccounts, 'find'>
}): JwtLogins {
  const { jwt } = deps.config
  const { secret, algorithm, issuer, audiences, subject_claim, display_name_claim, max_age_seconds: maxAge } = jwt

  const key = secret === undefined ? undefined : keyOf(secret, algorithm)

  async function claimsOf(token: string, fresh?: { readonly seconds: number }): Promise<JWTPayload> {
    if (key === undefined || token.length > MAX_TOKEN_CHARS) {
      throw new ProtocolError('M_FORBIDDEN', 'The token is not good here.')
    }
    // A token that is good for ever would be as good to whoever finds it years later.
    const age = Math.min(fresh?.seconds ?? Number.POSITIVE_INFINITY, maxAge ?? Number.POSITIVE_INFINITY)
    const bound = age < Number.POSITIVE_INFINITY ? { maxTokenAge: age } : { requiredClaims: ['exp'] }
    const { errors, jwtVerify } = await import('jose')
    try {
      const { payload } = await jwtVerify(token, key, {
        ...bound,
        algorithms: [algorithm],
        clockTolerance: TOLERANCE_SECONDS,
        currentDate: new Date(deps.clock.now()),
        ...(issuer !== undefined && { issuer }),
        ...(audiences.length > 0 && { audience: [...audiences] }),
      })
      return payload
    } catch (error) {
      if (!(error instanceof errors.JOSEError) && !(error instanceof TypeError)) throw error
      throw new ProtocolError('M_FORBIDDEN', `The token is not good here: ${error.message}.`)
    }
  }

  function subjectIn(claims: JWTPayload): string {
    const subject = claims[subject_claim]
    if (typeof subject === 'string' && subject !== '' && !subject.includes('\0')) return subject
    throw new ProtocolError('M_FORBIDDEN', `The token names nobody: it lacks the claim ${subject_claim}.`)
  }

  return {
    isEnabled: secret !== undefined,
    async ownerOf(token) {
      const claims = await claimsOf(token)
      const subject = subjectIn(claims)
      const name = display_name_claim === undefined ? undefined : claims[display_name_claim]
      const person = { subject, displayName: typeof name === 'string' ? name : undefined, email: undefined }
      return deps.accountOf(JWT_SOURCE, person, jwt)
    },
    async look(token) {
      const claims = await claimsOf(token)
      const madeAt = claims.iat === undefined ? undefined : Math.min(claims.iat * 1000, deps.clock.now())
      return { subject: subjectIn(claims), madeAt }
    },
    async prove({ token }, { requester }) {
      if (typeof token !== 'string') throw new ProtocolError('M_MISSING_PARAM', "Key 'token' is missing.")
      const subject = subjectIn(await claimsOf(token, { seconds: RECENT_PROOF_MS / 1000 }))
      const account = await deps.accounts.find(JWT_SOURCE, subject)
      if (account !== undefined && account.user_nid === requester?.userNid) return {}
      throw new ProtocolError('M_FORBIDDEN', 'This is the token of somebody else.')
    },
  }
}

/** @throws Error at the start for what is no key */
function keyOf(secret: string, algorithm: string): KeyObject | Uint8Array {
  if (algorithm.startsWith('HS')) return Buffer.from(secret)
  try {
    return createPublicKey(secret)
  } catch {
    throw new Error(`jwt.secret is no public key in PEM, which ${algorithm} needs`)
  }
}

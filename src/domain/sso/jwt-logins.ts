import { createPublicKey, type KeyObject } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import type { Clock } from '../clock.ts'
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
}

const SOURCE = 'login:jwt'
/** Clocks may differ by this much. */
const TOLERANCE_SECONDS = 30
const MAX_TOKEN_CHARS = 16_384

export function createJwtLogins(deps: {
  readonly config: Pick<Config, 'jwt'>
  readonly clock: Clock
  readonly accountOf: OutsideAccounts
}): JwtLogins {
  const { jwt } = deps.config
  const { secret, algorithm, issuer, audiences, subject_claim, display_name_claim } = jwt

  const key = secret === undefined ? undefined : keyOf(secret, algorithm)

  async function claimsOf(token: string): Promise<Readonly<Record<string, unknown>>> {
    const { errors, jwtVerify } = await import('jose')
    try {
      const { payload } = await jwtVerify(token, key!, {
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

  return {
    isEnabled: secret !== undefined,
    async ownerOf(token) {
      if (key === undefined || token.length > MAX_TOKEN_CHARS) {
        throw new ProtocolError('M_FORBIDDEN', 'The token is not good here.')
      }
      const claims = await claimsOf(token)
      const subject = claims[subject_claim]
      if (typeof subject !== 'string' || subject === '') {
        throw new ProtocolError('M_FORBIDDEN', `The token names nobody: it lacks the claim ${subject_claim}.`)
      }
      const name = display_name_claim === undefined ? undefined : claims[display_name_claim]
      const person = { subject, displayName: typeof name === 'string' ? name : undefined, email: undefined }
      return deps.accountOf(SOURCE, person, jwt)
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

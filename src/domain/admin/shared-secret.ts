import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { localpartOf, type UserId } from '../../core/ids.ts'
import { spendNonce } from '../../store/accounts/operator-tokens.ts'
import { changeProfile } from '../../store/accounts/profiles.ts'
import type { Database } from '../../store/db/db.ts'
import { type ExclusiveUsers, requireUnreserved } from '../accounts/exclusive-users.ts'
import { insertUser, requireFree } from '../accounts/insert-user.ts'
import { type Issued, issueToken } from '../accounts/issue-token.ts'
import { newUserId } from '../accounts/new-user-id.ts'
import type { Passwords } from '../accounts/passwords.ts'
import { settle } from '../accounts/upkeep/settling.ts'
import type { Clock, Random } from '../clock.ts'
import { MAX_DISPLAYNAME_CHARS } from '../limits.ts'
import { checkText } from '../text.ts'
import type { Audit } from './audit.ts'

export interface SecretRegistration {
  readonly nonce: string
  readonly username: string
  readonly displayName: string | undefined
  readonly password: string
  readonly isAdmin: boolean
  /** Hex of HMAC-SHA1 under the shared secret, over nonce, user name, password and `admin` or `notadmin`, between NULs. */
  readonly mac: string
}

/** Registers accounts for programs that know `registration.shared_secret`, by the protocol that administrators' tools use. */
export interface SharedSecret {
  /**
   * A nonce for one registration within a minute. It is stored only when it is used. @throws ProtocolError `M_UNKNOWN` (400) without a
   * secret
   */
  nonce(): string
  /**
   * @throws ProtocolError `M_FORBIDDEN` for a wrong mac, `M_UNKNOWN` (400) for an unknown, used or expired nonce, and the errors of a
   *   registration
   */
  register(request: SecretRegistration): Promise<Issued & { readonly userId: UserId }>
}

const NONCE_MS = 60_000
const NONCE_BYTES = 18
const MAX_CHARS = 512
const NONCE = /^(\d{13})\.([\w-]{24})\.([\w-]{43})$/

export function createSharedSecret(deps: {
  readonly config: Pick<Config, 'server_name' | 'registration' | 'sessions'>
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly passwords: Passwords
  readonly exclusiveUsers: ExclusiveUsers
  readonly audit: Audit
}): SharedSecret {
  const { config, db, clock, random, passwords, audit } = deps

  function secret(): string {
    const { shared_secret } = config.registration
    if (shared_secret !== undefined) return shared_secret
    const advice = 'Registration by shared secret is not set up: see `registration.shared_secret`.'
    throw new ProtocolError('M_UNKNOWN', advice, { status: 400 })
  }

  /** Proves that a nonce is ours. */
  const sealOf = (text: string): string => createHmac('sha256', secret()).update(`nonce ${text}`).digest('base64url')

  function expiryOf(nonce: string): number {
    const [, expiry = '', unique = '', seal = ''] = NONCE.exec(nonce) ?? []
    if (!isSame(seal, sealOf(`${expiry}.${unique}`)) || Number(expiry) <= clock.now()) throw staleNonce()
    return Number(expiry)
  }

  function checkMac({ nonce, username, password, isAdmin, mac }: SecretRegistration): void {
    const parts = [nonce, username, password, isAdmin ? 'admin' : 'notadmin']
    const expected = createHmac('sha1', secret()).update(parts.join('\0')).digest('hex')
    if (!isSame(mac.toLowerCase(), expected)) throw new ProtocolError('M_FORBIDDEN', 'The mac is not right.')
  }

  async function makeAccount(request: SecretRegistration, id: UserId): Promise<Issued> {
    const { password, displayName = localpartOf(id), isAdmin } = request
    requireUnreserved(deps.exclusiveUsers, id)
    await requireFree(db, id)
    passwords.checkNew(password)
    const passwordHash = await passwords.hash(password)
    return db.tx(async (tx) => {
      const userNid = await insertUser(tx, clock, id, { passwordHash, isGuest: false, isAdmin })
      await changeProfile(tx, userNid, { displayname: displayName })
      await settle(tx, deps, userNid, 'made')
      return issueToken(tx, deps, userNid, { deviceId: undefined, displayName: undefined })
    })
  }

  return {
    nonce() {
      const text = `${clock.now() + NONCE_MS}.${random.bytes(NONCE_BYTES).toString('base64url')}`
      return `${text}.${sealOf(text)}`
    },
    async register(request) {
      const expiresAt = expiryOf(request.nonce)
      // A NUL would move the boundary between two of the signed parts.
      checkText('username', request.username, MAX_CHARS)
      checkText('password', request.password, MAX_CHARS)
      checkText('displayname', request.displayName ?? '', MAX_DISPLAYNAME_CHARS)
      checkMac(request)
      if (!(await db.tx((tx) => spendNonce(tx, request.nonce, expiresAt)))) throw staleNonce()
      const userId = newUserId(request.username, config.server_name)
      const act = request.isAdmin ? 'register an administrator' : 'register'
      const issued = await audit.record({ actor: 'shared secret', act, target: userId }, () =>
        makeAccount(request, userId),
      )
      return { ...issued, userId }
    },
  }
}

function staleNonce(): ProtocolError {
  return new ProtocolError('M_UNKNOWN', 'This nonce is not good, or not any more. Ask for another.', { status: 400 })
}

/** Compares two texts in constant time. */
function isSame(given: string, expected: string): boolean {
  const left = Buffer.from(given)
  const right = Buffer.from(expected)
  return left.length === right.length && timingSafeEqual(left, right)
}

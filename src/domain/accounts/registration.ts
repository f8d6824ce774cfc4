import { createHash, timingSafeEqual } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { isNewLocalpart, type UserId, userId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { findAccount, insertAccount } from '../../store/accounts.ts'
import type { Database, Tx } from '../../store/db.ts'
import {
  hasUsableRegistrationToken,
  isUsableRegistrationToken,
  useRegistrationToken,
} from '../../store/registration-tokens.ts'
import { internUsers } from '../../store/users.ts'
import type { Clock, Random } from '../clock.ts'
import type { UiaFlow, UiaProof } from './interactive-auth.ts'
import { checkDeviceWish, type DeviceWish, type Issued, issueToken } from './issue-token.ts'
import type { Passwords } from './passwords.ts'
import { isRegistrationOpen, registrationClosed } from './registration-policy.ts'

export const TOKEN_STAGE = 'm.login.registration_token'

export interface NewAccount {
  /** Undefined lets the server choose. */
  readonly username: string | undefined
  readonly password: string
  /** Undefined makes no login. */
  readonly device: DeviceWish | undefined
}

export interface Registered {
  readonly userId: UserId
  readonly issued: Issued | undefined
}

export interface Registration {
  /** Whether anyone may make an account, without a token. */
  isOpen(isForwarded: boolean): boolean
  /**
   * The flows that lead to an account now.
   * @throws ProtocolError `M_FORBIDDEN` with advice when none does
   */
  flows(isForwarded: boolean): Promise<readonly UiaFlow[]>
  /**
   * The id that a user name would get. Reserves nothing.
   * @throws ProtocolError `M_INVALID_USERNAME`, `M_USER_IN_USE`
   */
  checkAvailable(username: string): Promise<UserId>
  /** Checks what can be checked before anyone authenticates. */
  check(account: {
    readonly username: string | undefined
    readonly password: string | undefined
    readonly device: DeviceWish
  }): Promise<void>
  /** The stage `m.login.registration_token`. */
  proveToken(auth: JsonObject): Promise<JsonObject>
  isTokenValid(token: string): Promise<boolean>
  /** Makes an account. A registration token in the proof is counted in the same transaction, so it cannot be used too often. */
  register(account: NewAccount, proof: UiaProof): Promise<Registered>
  /** @throws ProtocolError `M_FORBIDDEN` where guests are not welcome */
  registerGuest(displayName: string | undefined, isForwarded: boolean): Promise<Registered>
  /** Makes an account by the operator's will. */
  createUser(user: { readonly username: string; readonly password: string; readonly isAdmin: boolean }): Promise<UserId>
}

const CHOSEN_NAME_BYTES = 8

function sameSecret(left: string, right: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(left), digest(right))
}

export function createRegistration(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly passwords: Passwords
  readonly config: Pick<Config, 'server_name' | 'registration' | 'listen' | 'trusted_proxies' | 'public_base_url'>
}): Registration {
  const { db, clock, random, passwords, config } = deps
  const { registration, server_name } = config

  function userIdFor(username: string): UserId {
    // Names are lower case; capitals are what a phone's keyboard makes of them.
    const localpart = username.toLowerCase()
    if (!isNewLocalpart(localpart, server_name)) {
      const error = 'A user name may hold the letters a to z, digits and . _ = - / + only, and not be too long.'
      throw new ProtocolError('M_INVALID_USERNAME', error)
    }
    return userId(localpart, server_name)
  }

  async function checkAvailable(username: string): Promise<UserId> {
    const wanted = userIdFor(username)
    if ((await findAccount(db, wanted)) !== undefined) throw inUse()
    return wanted
  }

  async function insert(
    tx: Tx,
    id: UserId,
    account: { readonly passwordHash: string | undefined; readonly isGuest: boolean; readonly isAdmin: boolean },
  ): Promise<number> {
    const userNid = (await internUsers(tx, [id])).get(id) as number
    if (!(await insertAccount(tx, { ...account, userNid, createdAt: clock.now() }))) throw inUse()
    return userNid
  }

  function isConfiguredToken(token: string): boolean {
    return registration.token !== undefined && sameSecret(token, registration.token)
  }

  async function isTokenValid(token: string): Promise<boolean> {
    return isConfiguredToken(token) || isUsableRegistrationToken(db, token, clock.now())
  }

  function isOpen(isForwarded: boolean): boolean {
    return isRegistrationOpen(config, isForwarded) && !registration.require_token
  }

  function chosenName(prefix: string): string {
    return prefix + random.bytes(CHOSEN_NAME_BYTES).toString('hex')
  }

  return {
    checkAvailable,
    isTokenValid,

    isOpen,

    async flows(isForwarded) {
      if (isOpen(isForwarded)) return [['m.login.dummy']]
      if (registration.token !== undefined || (await hasUsableRegistrationToken(db, clock.now()))) {
        return [[TOKEN_STAGE]]
      }
      throw registrationClosed()
    },

    async check({ username, password, device }) {
      if (username !== undefined) await checkAvailable(username)
      if (password !== undefined) passwords.checkNew(password)
      checkDeviceWish(device)
    },

    async proveToken(auth) {
      const { token } = auth
      if (typeof token !== 'string') throw new ProtocolError('M_MISSING_PARAM', "Key 'auth.token' is missing.")
      if (!(await isTokenValid(token)))
        throw new ProtocolError('M_UNAUTHORIZED', 'This registration token is not valid.')
      return isConfiguredToken(token) ? {} : { token }
    },

    async register(account, proof) {
      const wanted = userIdFor(account.username ?? chosenName('u'))
      passwords.checkNew(account.password)
      const passwordHash = await passwords.hash(account.password)
      const token = proof[TOKEN_STAGE]?.token
      return db.tx(async (tx) => {
        if (typeof token === 'string' && !(await useRegistrationToken(tx, token, clock.now()))) {
          throw new ProtocolError('M_FORBIDDEN', 'This registration token was used up meanwhile.')
        }
        const userNid = await insert(tx, wanted, { passwordHash, isGuest: false, isAdmin: false })
        const issued = account.device && (await issueToken(tx, deps, userNid, account.device))
        return { userId: wanted, issued }
      })
    },

    async registerGuest(displayName, isForwarded) {
      if (!registration.allow_guests || !isOpen(isForwarded)) {
        throw new ProtocolError('M_FORBIDDEN', 'Guests are not welcome on this server.')
      }
      const device = { deviceId: undefined, displayName }
      checkDeviceWish(device)
      const id = userIdFor(chosenName('guest-'))
      return db.tx(async (tx) => {
        const userNid = await insert(tx, id, { passwordHash: undefined, isGuest: true, isAdmin: false })
        return { userId: id, issued: await issueToken(tx, deps, userNid, device) }
      })
    },

    async createUser({ username, password, isAdmin }) {
      const id = await checkAvailable(username)
      passwords.checkNew(password)
      const passwordHash = await passwords.hash(password)
      await db.tx((tx) => insert(tx, id, { passwordHash, isGuest: false, isAdmin }))
      return id
    },
  }
}

function inUse(): ProtocolError {
  return new ProtocolError('M_USER_IN_USE', 'This user name is taken.')
}

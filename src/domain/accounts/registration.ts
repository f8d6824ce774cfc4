import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import type { Database } from '../../store/db.ts'
import type { Clock, Random } from '../clock.ts'
import { insertUser, requireFree } from './insert-user.ts'
import type { UiaFlow, UiaProof } from './interactive-auth.ts'
import { checkDeviceWish, type DeviceWish, type Issued, issueToken } from './issue-token.ts'
import { chosenName, newUserId } from './new-user-id.ts'
import type { Passwords } from './passwords.ts'
import { isRegistrationOpen, registrationClosed } from './registration-policy.ts'
import { type RegistrationTokens, TOKEN_STAGE } from './registration-tokens.ts'

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

/** What can be judged of a wish for an account before anyone authenticates. */
export interface AccountWish {
  readonly username: string | undefined
  readonly password: string | undefined
  readonly device: DeviceWish
}

export interface Registration {
  /** Whether anyone may make an account, without a token. */
  isOpen(isForwarded: boolean): boolean
  /** The flows that lead to an account now. @throws ProtocolError `M_FORBIDDEN` with advice when none does */
  flows(isForwarded: boolean): Promise<readonly UiaFlow[]>
  /** The id that a user name would get. Reserves nothing. @throws ProtocolError `M_INVALID_USERNAME`, `M_USER_IN_USE` */
  checkAvailable(username: string): Promise<UserId>
  /** @throws as `checkAvailable`, and `M_WEAK_PASSWORD`, `M_INVALID_PARAM` */
  check(wish: AccountWish): Promise<void>
  /** Makes an account. A registration token in the proof is counted in the same transaction. */
  register(account: NewAccount, proof: UiaProof): Promise<Registered>
  /** @throws ProtocolError `M_FORBIDDEN` where guests are not welcome */
  registerGuest(displayName: string | undefined, isForwarded: boolean): Promise<Registered>
}

export interface RegistrationDeps {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly passwords: Passwords
  readonly registrationTokens: RegistrationTokens
  readonly config: Pick<Config, 'server_name' | 'registration' | 'listen' | 'trusted_proxies' | 'public_base_url'>
}

export function createRegistration(deps: RegistrationDeps): Registration {
  const { db, clock, random, passwords, registrationTokens, config } = deps
  const { require_token, allow_guests } = config.registration
  const isOpen = (isForwarded: boolean) => isRegistrationOpen(config, isForwarded) && !require_token

  async function checkAvailable(username: string): Promise<UserId> {
    const wanted = newUserId(username, config.server_name)
    await requireFree(db, wanted)
    return wanted
  }

  return {
    isOpen,
    checkAvailable,
    async flows(isForwarded) {
      if (isOpen(isForwarded)) return [['m.login.dummy']]
      if (await registrationTokens.isAnyUsable()) return [[TOKEN_STAGE]]
      throw registrationClosed()
    },
    async check({ username, password, device }) {
      if (username !== undefined) await checkAvailable(username)
      if (password !== undefined) passwords.checkNew(password)
      checkDeviceWish(device)
    },
    async register({ username, password, device }, proof) {
      const id = newUserId(username ?? chosenName('u', random), config.server_name)
      passwords.checkNew(password)
      const passwordHash = await passwords.hash(password)
      return db.tx(async (tx) => {
        await registrationTokens.redeem(tx, proof)
        const userNid = await insertUser(tx, clock, id, { passwordHash, isGuest: false, isAdmin: false })
        return { userId: id, issued: device && (await issueToken(tx, deps, userNid, device)) }
      })
    },
    async registerGuest(displayName, isForwarded) {
      if (!allow_guests || !isOpen(isForwarded)) {
        throw new ProtocolError('M_FORBIDDEN', 'Guests are not welcome on this server.')
      }
      const device = { deviceId: undefined, displayName }
      checkDeviceWish(device)
      const id = newUserId(chosenName('guest-', random), config.server_name)
      return db.tx(async (tx) => {
        const userNid = await insertUser(tx, clock, id, { passwordHash: undefined, isGuest: true, isAdmin: false })
        return { userId: id, issued: await issueToken(tx, deps, userNid, device) }
      })
    },
  }
}

import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { localpartOf, type UserId } from '../../core/ids.ts'
import { upgradeGuest } from '../../store/accounts/accounts.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import type { Clock, Random } from '../clock.ts'
import { threepidsIn } from '../contact/contact-proofs.ts'
import type { Contacts } from '../contact/contacts.ts'
import type { Gate, Newcomer } from '../moderation/gate.ts'
import type { Devices } from './devices.ts'
import { type ExclusiveUsers, requireUnreserved } from './exclusive-users.ts'
import {
  createFinishedRegistrations,
  type FinishedRegistrations,
  type RegistrationCall,
} from './finished-registrations.ts'
import { insertUser, requireFree } from './insert-user.ts'
import { checkDeviceWish, type DeviceWish, type Issued, issueToken } from './issue-token.ts'
import { chosenName, newUserId } from './new-user-id.ts'
import type { Passwords } from './passwords.ts'
import { registrationFlows } from './registration-flows.ts'
import { isRegistrationOpen, registrationClosed } from './registration-policy.ts'
import type { RegistrationTerms } from './registration-terms.ts'
import type { RegistrationTokens } from './registration-tokens.ts'
import type { Requester } from './requester.ts'
import type { Sessions } from './sessions.ts'
import type { UiaFlow, UiaProof } from './uia-flows.ts'
import { settle } from './upkeep/settling.ts'
import { requireRoomForUser } from './user-cap.ts'

/** The part of a registration that can be checked before anyone authenticates. */
export interface AccountWish {
  /** Undefined lets the server choose. */
  readonly username: string | undefined
  readonly password: string | undefined
  readonly device: DeviceWish
  /** The token of a guest whose account becomes a user's account and keeps its name. */
  readonly guestToken: string | undefined
}

export interface NewAccount extends AccountWish {
  readonly password: string
  /** Whether the registration also logs a device in. */
  readonly logsIn: boolean
  /** Where the request came from. */
  readonly from: Newcomer['from']
  /** The session of the authentication, if there was one. */
  readonly call?: RegistrationCall | undefined
}

export interface Registered {
  readonly userId: UserId
  readonly issued: Issued | undefined
}

export interface Registration {
  readonly finished: FinishedRegistrations
  /** Whether anybody may register without a token. */
  isOpen(isForwarded: boolean): boolean
  /** Whether anybody may register, if only with a token. */
  isPossible(isForwarded: boolean): Promise<boolean>
  /** The flows by which one can register now. @throws ProtocolError `M_FORBIDDEN` with advice if there is none */
  flows(isForwarded: boolean): Promise<readonly UiaFlow[]>
  /**
   * The id that a user name would get. It does not reserve the name.
   * @throws ProtocolError `M_INVALID_USERNAME`, `M_USER_IN_USE`, `M_EXCLUSIVE`
   */
  checkAvailable(username: string): Promise<UserId>
  /** Asks what `register` asks of a new account, for one that is made in another way. @throws as `checkAvailable`, and `M_FORBIDDEN` */
  checkNew(username: string, newcomer: Newcomer): Promise<UserId>
  /** What follows for an account that its user has just made in another way, in the same transaction. */
  settle(tx: Tx, userNid: number): Promise<void>
  /** @throws as `checkAvailable`, and `M_WEAK_PASSWORD`, `M_INVALID_PARAM`; `M_UNKNOWN_TOKEN` or `M_FORBIDDEN` for a guest's token */
  check(wish: AccountWish): Promise<void>
  /**
   * Makes an account. The same transaction counts a use of the registration token in the proof, and adds proven addresses to the account.
   * @throws as `check`, and `M_FORBIDDEN`, `M_THREEPID_IN_USE`, `M_RESOURCE_LIMIT_EXCEEDED`
   */
  register(account: NewAccount, proof: UiaProof): Promise<Registered>
  /** @throws ProtocolError `M_FORBIDDEN` if guests are not allowed */
  registerGuest(displayName: string | undefined, isForwarded: boolean): Promise<Registered>
}

export interface RegistrationDeps {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly passwords: Passwords
  readonly sessions: Sessions
  readonly devices: Pick<Devices, 'removeAll'>
  readonly contacts: Pick<Contacts, 'addFrom'>
  readonly registrationTokens: RegistrationTokens
  readonly registrationTerms: RegistrationTerms
  readonly exclusiveUsers: ExclusiveUsers
  readonly gate: Pick<Gate, 'name' | 'register'>
  readonly config: Pick<
    Config,
    | 'server_name'
    | 'registration'
    | 'sessions'
    | 'listen'
    | 'https'
    | 'trusted_proxies'
    | 'public_base_url'
    | 'well_known'
  >
}

/** The email address that somebody who registers has confirmed. */
function emailIn(proof: UiaProof): Newcomer['email'] {
  return threepidsIn(proof, 'register').find(({ medium }) => medium === 'email')
}

export function createRegistration(deps: RegistrationDeps): Registration {
  const { db, clock, random, passwords, sessions, devices, registrationTokens, registrationTerms, contacts, config } =
    deps
  const finished = createFinishedRegistrations(deps)
  const isOpen = (isForwarded: boolean) => isRegistrationOpen(config, isForwarded) && !config.registration.require_token

  async function checkAvailable(username: string): Promise<UserId> {
    const wanted = newUserId(username, config.server_name)
    requireUnreserved(deps.exclusiveUsers, wanted)
    deps.gate.name(wanted)
    await requireFree(db, wanted)
    return wanted
  }

  /** The guest who becomes a user. Others know the guest by this name, so it does not change. */
  async function guestOf(token: string, username: string | undefined): Promise<Requester> {
    const guest = await sessions.find(token)
    if (guest === undefined) throw new ProtocolError('M_UNKNOWN_TOKEN', "The guest's access token is not known here.")
    if (guest.isGuest && (username === undefined || localpartOf(guest.userId) === username)) return guest
    throw new ProtocolError('M_FORBIDDEN', "Only a guest's own account can be kept, under the name that it has.")
  }

  async function insert(tx: Tx, id: UserId, passwordHash: string, proof: UiaProof): Promise<number> {
    await requireRoomForUser(tx, config)
    await registrationTokens.redeem(tx, proof)
    const userNid = await insertUser(tx, clock, id, { passwordHash, isGuest: false, isAdmin: false })
    await keep(tx, userNid, proof)
    await settle(tx, deps, userNid, 'own')
    return userNid
  }

  /** Stores what the stages established about the new user. */
  async function keep(tx: Tx, userNid: number, proof: UiaProof): Promise<void> {
    await registrationTerms.record(tx, userNid, proof, clock.now())
    await contacts.addFrom(tx, userNid, proof)
  }

  async function upgrade(guest: Requester, passwordHash: string, account: NewAccount, proof: UiaProof) {
    const registered = await db.tx(async (tx) => {
      await requireRoomForUser(tx, config)
      await registrationTokens.redeem(tx, proof)
      if (!(await upgradeGuest(tx, guest.userNid, passwordHash))) {
        throw new ProtocolError('M_FORBIDDEN', 'This account is no guest any more.')
      }
      await keep(tx, guest.userNid, proof)
      await settle(tx, deps, guest.userNid, 'own')
      const issued = account.logsIn ? await issueToken(tx, deps, guest.userNid, account.device) : undefined
      return remembered(tx, account, guest.userNid, { userId: guest.userId, issued })
    })
    // Keys and messages of the guest's device end with the guest.
    await devices.removeAll(guest.userNid, registered.issued?.deviceId)
    sessions.forget(guest.userNid)
    return registered
  }

  /** Records the registration: the answer may be lost, and then the client sends the request again. */
  async function remembered(
    tx: Tx,
    { call }: NewAccount,
    userNid: number,
    registered: Registered,
  ): Promise<Registered> {
    const { userId, issued } = registered
    const device = issued && { deviceId: issued.deviceId }
    if (call !== undefined) await finished.record(tx, call, { userNid, userId, ...device })
    return registered
  }

  return {
    finished,
    isOpen,
    isPossible: async (isForwarded) => isOpen(isForwarded) || registrationTokens.isAnyUsable(),
    checkAvailable,
    async checkNew(username, newcomer) {
      const id = await checkAvailable(username)
      await deps.gate.register(id, newcomer)
      return id
    },
    settle: (tx, userNid) => settle(tx, deps, userNid, 'own'),
    async flows(isForwarded) {
      if (isOpen(isForwarded)) return registrationFlows(config, false)
      if (await registrationTokens.isAnyUsable()) return registrationFlows(config, true)
      throw registrationClosed()
    },
    async check({ username, password, device, guestToken }) {
      if (guestToken !== undefined) await guestOf(guestToken, username)
      else if (username !== undefined) await checkAvailable(username)
      if (password !== undefined) passwords.checkNew(password)
      checkDeviceWish(device)
    },
    async register(account, proof) {
      const { username, password, guestToken, device, logsIn } = account
      passwords.checkNew(password)
      const guest = guestToken === undefined ? undefined : await guestOf(guestToken, username)
      const id = newUserId(username ?? chosenName('u', random), config.server_name)
      if (guest === undefined) requireUnreserved(deps.exclusiveUsers, id)
      await deps.gate.register(guest?.userId ?? id, { email: emailIn(proof), from: account.from })
      const passwordHash = await passwords.hash(password)
      if (guest !== undefined) return upgrade(guest, passwordHash, account, proof)
      return db.tx(async (tx) => {
        const userNid = await insert(tx, id, passwordHash, proof)
        const issued = logsIn ? await issueToken(tx, deps, userNid, device) : undefined
        return remembered(tx, account, userNid, { userId: id, issued })
      })
    },
    async registerGuest(displayName, isForwarded) {
      if (!config.registration.allow_guests || !isOpen(isForwarded)) {
        throw new ProtocolError('M_FORBIDDEN', 'Guests are not welcome on this server.')
      }
      const device = { deviceId: undefined, displayName }
      checkDeviceWish(device)
      const id = newUserId(chosenName('guest-', random), config.server_name)
      return db.tx(async (tx) => {
        const userNid = await insertUser(tx, clock, id, { passwordHash: undefined, isGuest: true, isAdmin: false })
        await settle(tx, deps, userNid, 'guest')
        return { userId: id, issued: await issueToken(tx, deps, userNid, device) }
      })
    },
  }
}

import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { localpartOf, type UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import {
  type AccountRow,
  findAccount,
  hasPassword,
  lockAccount,
  setPasswordHash,
} from '../../store/accounts/accounts.ts'
import { findProvidersOf } from '../../store/accounts/external-ids.ts'
import { findThreepidOwner } from '../../store/accounts/user-threepids.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import type { Clock, Random } from '../clock.ts'
import { networkOf } from '../network.ts'
import type { NewLoginNotes } from '../new-logins/notes.ts'
import { JWT_SOURCE, JWT_STAGE } from '../sso/jwt-logins.ts'
import { LDAP_SOURCE } from '../sso/ldap-passwords.ts'
import type { Devices } from './devices.ts'
import type { UiaStage } from './interactive-auth.ts'
import { checkDeviceWish, type DeviceWish, type Issued, issueToken } from './issue-token.ts'
import { createLoginBrake } from './login-brake.ts'
import type { LoginTokens } from './login-tokens.ts'
import type { Passwords } from './passwords.ts'
import { accountLocked, type Requester } from './requester.ts'
import type { Sessions } from './sessions.ts'
import type { UiaFlow } from './uia-flows.ts'
import { type Identified, identifiedBy } from './user-lookup.ts'

export interface LoggedIn extends Issued {
  readonly userId: UserId
}

export interface Logins {
  /**
   * Logs a device in by password. Takes the same time whether the user exists or not. Wrong passwords are counted by account and address.
   * @throws ProtocolError `M_FORBIDDEN`, `M_USER_DEACTIVATED`, `M_USER_LOCKED`, `M_LIMIT_EXCEEDED`
   */
  byPassword(credentials: JsonObject, device: DeviceWish, address: string): Promise<LoggedIn>
  /**
   * Logs a device in by a login token, and consumes it.
   * @throws ProtocolError `M_FORBIDDEN`, `M_USER_DEACTIVATED`, `M_USER_LOCKED`
   */
  byToken(token: string, device: DeviceWish): Promise<LoggedIn>
  /**
   * Who has this name and password, as `byPassword`; nobody is logged in. `name`: a user name or id, an email address. `passwordHash`: what
   * was found then; the password may have changed since.
   * @throws ProtocolError as `byPassword`
   */
  authenticate(
    name: string,
    password: string,
    address: string,
  ): Promise<{ readonly userNid: number; readonly passwordHash: string | null }>
  /**
   * Logs a device in for a user who has proved elsewhere who they are.
   * @throws ProtocolError `M_USER_DEACTIVATED`, `M_USER_LOCKED`
   */
  byProof(userId: UserId, device: DeviceWish): Promise<LoggedIn>
  /** How a user can authenticate again: by a password, theirs or of the directory, by single sign-on, or by a token of an outside service. */
  proofsOf(userNid: number): Promise<readonly UiaFlow[]>
  /** The stage `m.login.password`: the requester gives their own password again. Without a requester, `auth` names the user. */
  provePassword: UiaStage['prove']
  /** Attempts that were refused unchecked since the start, because too many passwords were wrong. */
  refusals(): number
  /** Ends the requester's session and removes its device. */
  logout(requester: Requester): Promise<void>
  /** Ends all sessions of the requester and removes all devices. */
  logoutAll(requester: Requester): Promise<void>
}

/** Where a password comes from. */
interface From {
  /** The user of the session, if the requester authenticates again. */
  readonly userNid?: number | undefined
  /** As `networkOf` returns it. */
  readonly network: string
}

const PASSWORD_STAGE = 'm.login.password'
const REFUSED = 'The user name or the password is wrong.'

function deactivated(): ProtocolError {
  return new ProtocolError('M_USER_DEACTIVATED', 'This account has been deactivated.')
}

interface LoginDeps {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly passwords: Passwords
  readonly sessions: Sessions
  readonly devices: Pick<Devices, 'announce' | 'remove' | 'removeAll' | 'trim'>
  readonly loginTokens: LoginTokens
  readonly newLogins: Pick<NewLoginNotes, 'note' | 'noted'>
  /** Whose name and password these are in a directory of the operator; undefined if nobody's. */
  readonly outside?: ((name: string, password: string) => Promise<UserId | undefined>) | undefined
  readonly config: Pick<Config, 'server_name' | 'sso' | 'jwt' | 'sessions' | 'rate_limits'>
}

/** Checks who has a name and a password, at the same cost whether anybody has. */
function createPasswordCheck(deps: LoginDeps) {
  const { db, passwords, sessions, config } = deps
  const brake = createLoginBrake(deps)

  async function firstAccount(ids: readonly UserId[]): Promise<AccountRow | undefined> {
    for (const id of ids) {
      const account = await findAccount(db, id)
      if (account !== undefined) return account
    }
    return undefined
  }

  /** The account, and the key that counts its logins. Runs the same number of queries whether the account exists or not. */
  async function find(identified: Identified): Promise<AccountRow | undefined> {
    if (identified.kind === 'user') return firstAccount(identified.ids)
    const owner = await findThreepidOwner(db, identified.medium, identified.address)
    return owner && findAccount(db, owner.user_id)
  }

  async function authenticate(credentials: JsonObject, from: From): Promise<AccountRow> {
    const { password } = credentials
    if (typeof password !== 'string') throw new ProtocolError('M_MISSING_PARAM', "Key 'password' is missing.")
    const identified = await identifiedBy(credentials, config.server_name)
    const name = identified.kind === 'user' ? (identified.ids.at(-1) ?? 'nobody') : identified.address
    const place = from.userNid === undefined ? from.network : `user ${from.userNid}`
    passwords.mustHaveRoom()
    const wasRight = await brake.begin(name, place, async () => isKnown(await find(identified), from))
    const account = await find(identified)
    const fits = await passwords.verify(password, account?.password_hash).catch((error) => {
      // Nobody knows whether it was wrong: it does not count as that.
      wasRight()
      throw error
    })
    // A deactivated account has no password that could prove who the owner is.
    const isEnded = account !== undefined && account.deactivated_at !== null
    if (isEnded && (fits || account.password_hash === null)) throw deactivated()
    const proven = fits ? account : await findOutside(identified, password)
    if (proven === undefined) throw new ProtocolError('M_FORBIDDEN', REFUSED)
    wasRight()
    return proven
  }

  /** The account of who has this name and password in the directory of the operator. */
  async function findOutside(identified: Identified, password: string): Promise<AccountRow | undefined> {
    const id = identified.kind === 'user' ? identified.ids.at(-1) : undefined
    const owner = id && (await deps.outside?.(localpartOf(id), password))
    return owner && findAccount(db, owner)
  }

  /** Whether the owner was at this place: with this session, or at an address where a session was lately. */
  async function isKnown(account: AccountRow | undefined, { userNid, network }: From): Promise<boolean> {
    if (userNid !== undefined) return account?.user_nid === userNid
    // Also queried without an account, so that it takes the same time.
    return sessions.hasBeenAt(account?.user_nid ?? 0, network)
  }

  return { authenticate, refusals: brake.refusals }
}

export function createLogins(deps: LoginDeps): Logins {
  const { db, passwords, sessions, devices, loginTokens, newLogins, config } = deps
  const { authenticate, refusals } = createPasswordCheck(deps)
  const providers = new Set(config.sso.providers.map(({ id }) => id))
  const takesTokens = config.jwt.secret !== undefined

  /** The password may have changed, or the account may have been deactivated, since the password was checked. */
  async function requireUnchanged(tx: Tx, account: AccountRow): Promise<void> {
    const now = await lockAccount(tx, account.user_nid)
    if (now === undefined || now.deactivated_at !== null) throw deactivated()
    if (now.is_locked) throw accountLocked()
    if (now.password_hash !== account.password_hash) throw new ProtocolError('M_FORBIDDEN', REFUSED)
  }

  /** A new hash at the configured cost. This is possible only now that the server has the password. */
  async function refreshedHash(account: AccountRow, password: string): Promise<string | undefined> {
    if (account.password_hash === null || !passwords.isOutdated(account.password_hash)) return undefined
    return passwords.hash(password)
  }

  /** Logs the device in, in the transaction. The owner will be told of what is new in it. */
  async function issue(tx: Tx, userNid: number, device: DeviceWish): Promise<Issued> {
    const issued = await issueToken(tx, deps, userNid, device)
    const { deviceId, isNewDevice } = issued
    await newLogins.note(tx, { userNid, deviceId, isNewDevice, deviceName: device.displayName, from: device.from })
    return issued
  }

  /** After the commit. */
  async function settle(userNid: number, issued: Issued): Promise<void> {
    sessions.forget(userNid, issued.deviceId)
    newLogins.noted()
    if (!issued.isNewDevice) return
    await devices.announce(userNid, issued)
    await devices.trim(userNid)
  }

  async function enter(account: AccountRow, device: DeviceWish, hash: string | undefined): Promise<LoggedIn> {
    const issued = await db.tx(async (tx) => {
      await requireUnchanged(tx, account)
      if (hash !== undefined) await setPasswordHash(tx, account.user_nid, hash)
      return issue(tx, account.user_nid, device)
    })
    await settle(account.user_nid, issued)
    return { ...issued, userId: account.user_id }
  }

  return {
    async byPassword(credentials, device, address) {
      checkDeviceWish(device)
      const account = await authenticate(credentials, { network: networkOf(address) })
      return enter(account, device, await refreshedHash(account, credentials.password as string))
    },

    async byProof(userId, device) {
      checkDeviceWish(device)
      const account = await findAccount(db, userId)
      if (account === undefined) throw deactivated()
      return enter(account, device, undefined)
    },

    async authenticate(name, password, address) {
      const isEmail = !name.startsWith('@') && name.includes('@')
      const identifier = isEmail
        ? { type: 'm.id.thirdparty', medium: 'email', address: name }
        : { type: 'm.id.user', user: name }
      const account = await authenticate({ identifier, password }, { network: networkOf(address) })
      if (account.is_locked) throw accountLocked()
      return { userNid: account.user_nid, passwordHash: account.password_hash }
    },

    async byToken(token, device) {
      checkDeviceWish(device)
      const { userNid, ...loggedIn } = await db.tx(async (tx) => {
        const { userNid: nid, userId } = await loginTokens.redeem(tx, token)
        return { userNid: nid, userId, ...(await issue(tx, nid, device)) }
      })
      await settle(userNid, loggedIn)
      return loggedIn
    },

    async proofsOf(userNid) {
      if (providers.size === 0 && !takesTokens) return [[PASSWORD_STAGE]]
      const [ownPassword, linked] = await Promise.all([hasPassword(db, userNid), findProvidersOf(db, userNid)])
      const hasDirectory = deps.outside !== undefined && linked.includes(LDAP_SOURCE)
      const flows = [
        ...(ownPassword || hasDirectory ? [[PASSWORD_STAGE]] : []),
        ...(linked.some((provider) => providers.has(provider)) ? [['m.login.sso']] : []),
        ...(takesTokens && linked.includes(JWT_SOURCE) ? [[JWT_STAGE]] : []),
      ]
      return flows.length > 0 ? flows : [[PASSWORD_STAGE]]
    },

    async provePassword(auth, { requester, address = 'unknown' }) {
      const account = await authenticate(auth, { userNid: requester?.userNid, network: address })
      if (requester === undefined) {
        if (account.is_locked) throw accountLocked()
        return { user_nid: account.user_nid, user_id: account.user_id }
      }
      if (account.user_nid !== requester.userNid) throw new ProtocolError('M_FORBIDDEN', REFUSED)
      return {}
    },

    refusals,
    logout: ({ userNid, deviceId }) => devices.remove(userNid, [deviceId]),
    logoutAll: ({ userNid }) => devices.removeAll(userNid),
  }
}

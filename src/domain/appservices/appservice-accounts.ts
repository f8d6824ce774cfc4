import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { isNewLocalpart, isUserId, type UserId, userId } from '../../core/ids.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import { findAccount, insertMissingAccounts } from '../../store/accounts/accounts.ts'
import { internUsers } from '../../store/accounts/users.ts'
import type { Database } from '../../store/db/db.ts'
import type { Devices } from '../accounts/devices.ts'
import { insertUser } from '../accounts/insert-user.ts'
import { checkDeviceWish, type DeviceWish, type Issued, issueToken } from '../accounts/issue-token.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { Clock, Random } from '../clock.ts'
import type { Appservice } from './appservice.ts'
import type { AppserviceRegistry } from './registry.ts'

/** Accounts of application services: makes them, and logs in to them with `m.login.application_service`. */
export interface AppserviceAccounts {
  /**
   * Makes the account of a user in the service's namespace. Logs a device in unless the request says not to.
   * @throws ProtocolError `M_EXCLUSIVE` outside its namespaces, `M_INVALID_USERNAME`, `M_USER_IN_USE`
   */
  register(
    service: Appservice,
    wish: { readonly username: string; readonly device: DeviceWish; readonly logsIn: boolean },
  ): Promise<{ readonly userId: UserId; readonly issued: Issued | undefined }>
  /** @throws ProtocolError `M_EXCLUSIVE` outside its namespaces, `M_FORBIDDEN` if there is no account, `M_USER_DEACTIVATED` */
  login(service: Appservice, whom: JsonObject, device: DeviceWish): Promise<Issued & { readonly userId: UserId }>
  /** Makes the accounts of the services' own users, so that people can invite them before the service has called. */
  makeSenders(): Promise<void>
}

export function createAppserviceAccounts(deps: {
  readonly config: Pick<Config, 'server_name' | 'sessions'>
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly sessions: Pick<Sessions, 'forget'>
  readonly devices: Pick<Devices, 'announce'>
  readonly registry: AppserviceRegistry
}): AppserviceAccounts {
  const { config, db, clock, sessions, devices, registry } = deps
  const { server_name } = config

  function requireClaim(service: Appservice, id: UserId): void {
    const claims = registry.claimsOn('users', id)
    if (!claims.some((claim) => claim.service.id === service.id)) {
      throw new ProtocolError('M_EXCLUSIVE', `${id} lies outside the namespaces of ${service.id}.`)
    }
    if (claims.some((claim) => claim.exclusive && claim.service.id !== service.id)) {
      throw new ProtocolError('M_EXCLUSIVE', `${id} is kept for another application service.`)
    }
  }

  /** The user of an `identifier`, exactly as written: names of bridges may have capitals. */
  function nameOf(whom: JsonObject): UserId {
    const { identifier, user } = whom
    const name = isObject(identifier) && identifier.type === 'm.id.user' ? identifier.user : user
    if (typeof name !== 'string')
      throw new ProtocolError('M_MISSING_PARAM', "Key 'identifier' of type 'm.id.user' is missing.")
    const id = isUserId(name) ? name : userId(name, server_name)
    if (!isUserId(id)) throw new ProtocolError('M_INVALID_PARAM', 'This is no user name.')
    return id
  }

  return {
    async register(service, { username, device, logsIn }) {
      checkDeviceWish(device)
      const id = userId(username, server_name)
      // If we changed the spelling of a name, the service would go on with a name that does not exist.
      if (!isNewLocalpart(username, server_name) && id !== service.sender) {
        const error = 'A user name may hold the letters a to z, digits and . _ = - / + only, and not be too long.'
        throw new ProtocolError('M_INVALID_USERNAME', error)
      }
      requireClaim(service, id)
      return db.tx(async (tx) => {
        const kind = { passwordHash: undefined, isGuest: false, isAdmin: false, appserviceId: service.id }
        const userNid = await insertUser(tx, clock, id, kind)
        return { userId: id, issued: logsIn ? await issueToken(tx, deps, userNid, device) : undefined }
      })
    },
    async login(service, whom, device) {
      checkDeviceWish(device)
      const id = nameOf(whom)
      requireClaim(service, id)
      const account = await findAccount(db, id)
      if (account === undefined) {
        throw new ProtocolError('M_FORBIDDEN', `The application service ${service.id} has not registered ${id}.`)
      }
      if (account.deactivated_at !== null) {
        throw new ProtocolError('M_USER_DEACTIVATED', `The account ${id} has been deactivated.`)
      }
      const issued = await db.tx((tx) => issueToken(tx, deps, account.user_nid, device))
      sessions.forget(account.user_nid, issued.deviceId)
      await devices.announce(account.user_nid, issued)
      return { ...issued, userId: id }
    },
    async makeSenders() {
      const services = registry.all()
      if (services.length === 0) return
      await db.tx(async (tx) => {
        const nids = await internUsers(
          tx,
          services.map(({ sender }) => sender),
        )
        const accounts = services.map(({ id, sender }) => ({ userNid: nids.get(sender)!, appserviceId: id }))
        await insertMissingAccounts(tx, accounts, clock.now())
      })
    },
  }
}

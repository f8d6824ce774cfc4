import { hash } from 'node:crypto'
import { createCache } from '../../core/cache.ts'
import { ProtocolError } from '../../core/errors.ts'
import { isUserId, type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import { findAccount } from '../../store/accounts/accounts.ts'
import { findDevice } from '../../store/accounts/devices.ts'
import type { Database } from '../../store/db/db.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Sessions } from '../accounts/sessions.ts'
import { MAX_REMEMBERED_GHOSTS } from '../limits.ts'
import type { Appservice } from './appservice.ts'
import type { AppserviceRegistry } from './registry.ts'

/** The user and device that a service's request names in its query. */
export interface Masquerade {
  readonly userId: string | undefined
  readonly deviceId: string | undefined
}

/** Identifies requests with an `as_token` (application service API, "Identity assertion"). */
export interface AppserviceCallers {
  /**
   * The user that the service acts as: its own one unless it names another; undefined for any other token.
   * @throws ProtocolError `M_FORBIDDEN` for a user outside its namespaces, or without an account; `M_UNKNOWN_DEVICE`
   */
  find(token: string, as: Masquerade): Requester | Promise<Requester> | undefined
}

export interface CallerDeps {
  readonly db: Database
  readonly serverName: ServerName
  readonly registry: AppserviceRegistry
  readonly sessions: Pick<Sessions, 'onForget'>
  /** Called when a service has sent a request. */
  heard(id: string): void
}

export function createAppserviceCallers(deps: CallerDeps): AppserviceCallers {
  const { db, serverName, registry, sessions, heard } = deps
  const remembered = createCache<string, Requester>(MAX_REMEMBERED_GHOSTS)
  // An account that was read before its deactivation must not be cached after it.
  let forgotten = 0
  const forgetAll = () => {
    forgotten += 1
    remembered.clear()
  }
  registry.onChange(forgetAll)
  sessions.onForget(forgetAll)

  function checkUser(service: Appservice, named: string): UserId {
    if (named === service.sender) return service.sender
    const isOwn =
      isUserId(named) &&
      serverOf(named) === serverName &&
      registry.claimsOn('users', named).some((claim) => claim.service === service)
    if (isOwn) return named
    throw new ProtocolError('M_FORBIDDEN', `The application service ${service.id} may not act as ${named}.`)
  }

  async function read(service: Appservice, userId: UserId, deviceId: string): Promise<Requester> {
    const account = await findAccount(db, userId)
    if (account === undefined) {
      throw new ProtocolError('M_FORBIDDEN', `The application service ${service.id} has not registered ${userId}.`)
    }
    if (account.deactivated_at !== null) {
      throw new ProtocolError('M_USER_DEACTIVATED', `The account ${userId} has been deactivated.`)
    }
    const userNid = account.user_nid
    if (deviceId !== '' && (await findDevice(db, userNid, deviceId)) === undefined) {
      throw new ProtocolError('M_UNKNOWN_DEVICE', `${userId} has no device ${deviceId}.`)
    }
    const isLimited = service.registration.rate_limited && userId !== service.sender
    const restraints = { isLocked: account.is_locked, isSuspended: account.is_suspended }
    const scope = { userId, userNid, deviceId, tokenNid: scopeOf(userNid, deviceId), isGuest: false, ...restraints }
    const restraint = { isLocked: account.is_locked, isSuspended: account.is_suspended }
    return { ...scope, ...restraint, appservice: service, ...(!isLimited && { isUnlimited: true }) }
  }

  return {
    find(token, { userId, deviceId = '' }) {
      const service = registry.byToken(token)
      if (service === undefined) return undefined
      heard(service.id)
      const as = checkUser(service, userId ?? service.sender)
      const key = `${service.id} ${as} ${deviceId}`
      const known = remembered.get(key)
      if (known !== undefined) return known
      const before = forgotten
      return read(service, as, deviceId).then((requester) => {
        if (forgotten === before) remembered.set(key, requester)
        return requester
      })
    },
  }
}

/**
 * The scope of transaction ids: a number for user and device that no login has, and that stays the same after a restart. Each user has
 * its own, because frameworks number the requests of each user.
 */
function scopeOf(userNid: number, deviceId: string): number {
  if (deviceId === '') return -userNid
  return -(2 ** 52 + hash('sha256', `${userNid} ${deviceId}`, 'buffer').readUIntBE(0, 6))
}

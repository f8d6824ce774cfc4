import { ProtocolError } from '../../core/errors.ts'
import type { RoomAlias, UserId } from '../../core/ids.ts'
import type { ExclusiveUsers } from '../accounts/exclusive-users.ts'
import type { Requester } from '../accounts/requester.ts'
import type { AppserviceRegistry } from './registry.ts'

/** The names that application services reserve, and the namespaces in which each may make names. */
export interface ExclusiveNames extends ExclusiveUsers {
  /**
   * Whether this caller may make or delete the alias: a person if no service reserves it, a service if it is in its own namespace.
   * @throws ProtocolError `M_EXCLUSIVE`
   */
  requireAlias(by: Pick<Requester, 'appservice'>, alias: RoomAlias): void
}

export function createExclusiveNames(registry: Pick<AppserviceRegistry, 'claimsOn'>): ExclusiveNames {
  return {
    isReserved(userId: UserId) {
      return registry.claimsOn('users', userId).some(({ exclusive }) => exclusive)
    },
    requireAlias({ appservice }, alias) {
      const claims = registry.claimsOn('aliases', alias)
      if (appservice !== undefined && !claims.some(({ service }) => service.id === appservice.id)) {
        throw new ProtocolError('M_EXCLUSIVE', `The alias ${alias} lies outside the namespaces of ${appservice.id}.`)
      }
      if (claims.some(({ service, exclusive }) => exclusive && service.id !== appservice?.id)) {
        throw new ProtocolError('M_EXCLUSIVE', `The alias ${alias} is kept for an application service.`)
      }
    },
  }
}

import type { Requester } from '../../domain/accounts/requester.ts'
import type { Services } from '../../domain/services.ts'
import type { Role } from '../../http/role.ts'
import { clientRole } from '../client/role.ts'
import { errorPageOf } from '../web/error-page.ts'

/** Called by people in browsers, and by the apps that send them there. */
export function personRole(services: Services): Role<Requester> {
  return { ...clientRole(services), errorPage: errorPageOf(services) }
}

import type { Requester } from '../../domain/accounts/requester.ts'
import type { Services } from '../../domain/services.ts'
import type { Role } from '../../http/role.ts'
import { clientRole } from '../client/role.ts'
import { pageReply } from '../web/page.ts'

/** Called by people in browsers, and by the apps that send them there. */
export function personRole(services: Services): Role<Requester> {
  return {
    ...clientRole(services),
    errorPage: (problem, acceptLanguage) =>
      pageReply(services, 'error.page', {}, { acceptLanguage, problem, status: problem.status, isSecret: true }),
  }
}

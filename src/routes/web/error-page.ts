import type { ProtocolError } from '../../core/errors.ts'
import type { Services } from '../../domain/services.ts'
import type { RawReply } from '../../http/endpoint.ts'
import { pageReply } from './page.ts'

/** What people in browsers see of an error. */
export const errorPageOf =
  (services: Pick<Services, 'pages'>) =>
  (problem: ProtocolError, acceptLanguage: string | undefined): RawReply =>
    pageReply(services, 'error.page', {}, { acceptLanguage, problem, status: problem.status, isSecret: true })

import { endpoint } from '../../../http/endpoint.ts'
import { submitByLink } from './submit-token.ts'
import { LinkQuery } from './token-request.ts'

/** A link in a mail carries no access token: session id, client secret and token are the proof. */
export const emailSubmitTokenGet = endpoint(
  'GET P2/validate/email/submitToken',
  { auth: 'none', query: LinkQuery, also: ['P1/validate/email/submitToken'] },
  (request, services) => submitByLink(services, services.identity.sessions, 'email', request),
)

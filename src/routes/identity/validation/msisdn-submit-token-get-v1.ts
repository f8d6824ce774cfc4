import { endpoint } from '../../../http/endpoint.ts'
import { submitByLink } from './submit-token.ts'
import { LinkQuery } from './token-request.ts'

export const msisdnSubmitTokenGetV1 = endpoint(
  'GET P1/validate/msisdn/submitToken',
  { auth: 'none', query: LinkQuery },
  (request, services) => submitByLink(services, services.identity.sessions, 'msisdn', request),
)

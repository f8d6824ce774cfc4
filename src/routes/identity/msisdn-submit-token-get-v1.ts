import { endpoint } from '../../http/endpoint.ts'
import { submitByLink } from './submit-token.ts'
import { Submission } from './token-request.ts'

export const msisdnSubmitTokenGetV1 = endpoint(
  'GET P1/validate/msisdn/submitToken',
  { auth: 'none', query: Submission },
  (request, { identity, config }) => submitByLink(identity.sessions, 'msisdn', request, config.identity.brand),
)

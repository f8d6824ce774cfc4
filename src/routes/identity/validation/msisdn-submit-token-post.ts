import { endpoint } from '../../../http/endpoint.ts'
import { submitToken } from './submit-token.ts'
import { Submission } from './token-request.ts'

export const msisdnSubmitTokenPost = endpoint(
  'POST P2/validate/msisdn/submitToken',
  { auth: 'identity', body: Submission, forms: true },
  ({ body }, { identity }) => submitToken(identity.sessions, 'msisdn', body),
)

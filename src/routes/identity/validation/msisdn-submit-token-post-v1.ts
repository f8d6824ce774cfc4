import { endpoint } from '../../../http/endpoint.ts'
import { submitToken } from './submit-token.ts'
import { Submission } from './token-request.ts'

export const msisdnSubmitTokenPostV1 = endpoint(
  'POST P1/validate/msisdn/submitToken',
  { auth: 'none', body: Submission, forms: true },
  ({ body }, { identity }) => submitToken(identity.sessions, 'msisdn', body),
)

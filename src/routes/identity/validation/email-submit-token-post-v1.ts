import { endpoint } from '../../../http/endpoint.ts'
import { submitToken } from './submit-token.ts'
import { Submission } from './token-request.ts'

export const emailSubmitTokenPostV1 = endpoint(
  'POST P1/validate/email/submitToken',
  { auth: 'none', body: Submission, forms: true },
  ({ body }, { identity }) => submitToken(identity.sessions, 'email', body),
)

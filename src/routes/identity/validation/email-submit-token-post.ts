import { endpoint } from '../../../http/endpoint.ts'
import { submitToken } from './submit-token.ts'
import { Submission } from './token-request.ts'

export const emailSubmitTokenPost = endpoint(
  'POST P2/validate/email/submitToken',
  { auth: 'identity', body: Submission, forms: true },
  ({ body }, { identity }) => submitToken(identity.sessions, 'email', body),
)

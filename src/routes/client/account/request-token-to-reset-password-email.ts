import { endpoint } from '../../../http/endpoint.ts'
import { EmailBody, emailIn, requestToken, TokenQuery } from './contact-request.ts'

export const requestTokenToResetPasswordEmail = endpoint(
  'POST C/account/password/email/requestToken',
  { auth: 'none', query: TokenQuery, body: EmailBody },
  (request, services) => requestToken('password', emailIn(request.body), request, services),
)

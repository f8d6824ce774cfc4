import { endpoint } from '../../../http/endpoint.ts'
import { EmailBody, emailIn, requestToken, TokenQuery } from './contact-request.ts'

export const requestTokenTo3pidEmail = endpoint(
  'POST C/account/3pid/email/requestToken',
  { auth: 'none', query: TokenQuery, body: EmailBody },
  (request, services) => requestToken('add', emailIn(request.body), request, services),
)

import { endpoint } from '../../../http/endpoint.ts'
import { EmailBody, emailIn, requestToken, TokenQuery } from './contact-request.ts'

export const requestTokenToRegisterEmail = endpoint(
  'POST C/register/email/requestToken',
  { auth: 'none', query: TokenQuery, body: EmailBody },
  async (request, services) => {
    // Nobody is mailed for the sake of an account that cannot be made.
    await services.registration.flows(request.isForwarded)
    return requestToken('register', emailIn(request.body), request, services)
  },
)

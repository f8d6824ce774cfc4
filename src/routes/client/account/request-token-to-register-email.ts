import { endpoint } from '../../../http/endpoint.ts'
import { EmailBody, emailIn, requestToken, TokenQuery } from './contact-request.ts'

export const requestTokenToRegisterEmail = endpoint(
  'POST C/register/email/requestToken',
  { auth: 'none', query: TokenQuery, body: EmailBody },
  async (request, services) => {
    // Throws if registration is not possible, so that no mail is sent in vain.
    await services.registration.flows(request.isForwarded)
    return requestToken('register', emailIn(request.body), request, services)
  },
)

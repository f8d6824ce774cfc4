import { endpoint } from '../../../http/endpoint.ts'
import { MsisdnBody, numberIn, requestToken, TokenQuery } from './contact-request.ts'

export const requestTokenToRegisterMsisdn = endpoint(
  'POST C/register/msisdn/requestToken',
  { auth: 'none', query: TokenQuery, body: MsisdnBody },
  async (request, services) => {
    // Throws if registration is not possible, so that no message is sent in vain.
    await services.registration.flows(request.isForwarded)
    return requestToken('register', numberIn(request.body), request, services)
  },
)

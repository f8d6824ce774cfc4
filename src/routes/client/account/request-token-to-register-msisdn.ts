import { endpoint } from '../../../http/endpoint.ts'
import { MsisdnBody, numberIn, requestToken, TokenQuery } from './contact-request.ts'

export const requestTokenToRegisterMsisdn = endpoint(
  'POST C/register/msisdn/requestToken',
  { auth: 'none', query: TokenQuery, body: MsisdnBody },
  async (request, services) => {
    // Nobody is mailed for the sake of an account that cannot be made.
    await services.registration.flows(request.isForwarded)
    return requestToken('register', numberIn(request.body), request, services)
  },
)

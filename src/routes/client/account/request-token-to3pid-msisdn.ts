import { endpoint } from '../../../http/endpoint.ts'
import { MsisdnBody, numberIn, requestToken, TokenQuery } from './contact-request.ts'

export const requestTokenTo3pidMsisdn = endpoint(
  'POST C/account/3pid/msisdn/requestToken',
  { auth: 'none', query: TokenQuery, body: MsisdnBody },
  (request, services) => requestToken('add', numberIn(request.body), request, services),
)

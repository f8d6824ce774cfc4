import { endpoint } from '../../../http/endpoint.ts'
import { MsisdnBody, numberIn, requestToken, TokenQuery } from './contact-request.ts'

export const requestTokenToResetPasswordMsisdn = endpoint(
  'POST C/account/password/msisdn/requestToken',
  { auth: 'none', query: TokenQuery, body: MsisdnBody },
  (request, services) => requestToken('password', numberIn(request.body), request, services),
)

import { endpoint } from '../../../http/endpoint.ts'
import { SignBody, signInvite } from './invite-request.ts'

export const blindlySignStuff = endpoint(
  'POST P2/sign-ed25519',
  { auth: 'identity', body: SignBody },
  ({ body }, { identity }) => signInvite(body, identity),
)

import { endpoint } from '../../../http/endpoint.ts'
import { SignBody, signInvite } from './invite-request.ts'

export const blindlySignStuffV1 = endpoint(
  'POST P1/sign-ed25519',
  { auth: 'none', body: SignBody, forms: true },
  ({ body }, { identity }) => signInvite(body, identity),
)

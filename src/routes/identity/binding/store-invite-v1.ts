import { endpoint } from '../../../http/endpoint.ts'
import { InviteBody, InviteQuery, storeInvite } from './invite-request.ts'

export const storeInviteV1 = endpoint(
  'POST P1/store-invite',
  { auth: 'none', query: InviteQuery, body: InviteBody, forms: true },
  storeInvite,
)

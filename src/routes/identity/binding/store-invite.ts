import { endpoint } from '../../../http/endpoint.ts'
import { InviteBody, InviteQuery, storeInvite as store } from './invite-request.ts'

export const storeInvite = endpoint(
  'POST P2/store-invite',
  { auth: 'identity', query: InviteQuery, body: InviteBody },
  store,
)

import { endpoint } from '../../../http/endpoint.ts'
import { BindBody } from './bind-request.ts'

export const bind = endpoint(
  'POST P2/3pid/bind',
  { auth: 'identity', body: BindBody, forms: true, also: ['P2/bind'] },
  ({ body, requester }, { identity }) =>
    identity.bindings.bind({ sid: body.sid, clientSecret: body.client_secret }, body.mxid, requester),
)

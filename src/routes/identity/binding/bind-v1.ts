import { endpoint } from '../../../http/endpoint.ts'
import { BindBody } from './bind-request.ts'

export const bindV1 = endpoint(
  'POST P1/3pid/bind',
  { auth: 'none', body: BindBody, forms: true },
  ({ body }, { identity }) =>
    identity.bindings.bind({ sid: body.sid, clientSecret: body.client_secret }, body.mxid, undefined),
)

import { endpoint } from '../../../http/endpoint.ts'
import { UnbindBody, unbind } from './bind-request.ts'

export const unbindV1 = endpoint('POST P1/3pid/unbind', { auth: 'none', body: UnbindBody }, (request, { identity }) =>
  unbind(request, true, identity),
)

import { endpoint } from '../../../http/endpoint.ts'
import { UnbindBody, unbind as unbindBy } from './bind-request.ts'

export const unbind = endpoint(
  'POST P2/3pid/unbind',
  { auth: 'identity-optional', body: UnbindBody, also: ['P2/unbind'] },
  (request, { identity }) => unbindBy(request, request.requester !== undefined, identity),
)

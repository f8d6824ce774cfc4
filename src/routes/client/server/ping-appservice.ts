import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const pingAppservice = endpoint(
  'POST C1/appservice/{appserviceId}/ping',
  { auth: 'user', body: Type.Object({ transaction_id: Type.Optional(Type.String()) }), bodyOptional: true },
  async ({ requester, params, body }, { appservices }) => ({
    duration_ms: await appservices.ping(requester, params.appserviceId, body.transaction_id),
  }),
)

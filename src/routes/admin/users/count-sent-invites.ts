import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const countSentInvites = endpoint(
  'GET /_synapse/admin/v1/users/{userId}/sent_invite_count',
  { auth: 'admin', query: Type.Object({ from_ts: Type.Integer({ minimum: 0 }) }) },
  async ({ params, query }, { admin }) => ({
    invite_count: await admin.terms.sentInvites(params.userId, query.from_ts),
  }),
)

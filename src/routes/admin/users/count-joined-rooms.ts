import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const countJoinedRooms = endpoint(
  'GET /_synapse/admin/v1/users/{userId}/cumulative_joined_room_count',
  { auth: 'admin', query: Type.Object({ from_ts: Type.Integer({ minimum: 0 }) }) },
  async ({ params, query }, { admin }) => ({
    cumulative_joined_room_count: await admin.terms.joinedRooms(params.userId, query.from_ts),
  }),
)

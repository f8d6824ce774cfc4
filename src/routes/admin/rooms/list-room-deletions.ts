import { endpoint } from '../../../http/endpoint.ts'

export const listRoomDeletions = endpoint(
  'GET /_synapse/admin/v2/rooms/{roomId}/delete_status',
  { auth: 'admin' },
  async ({ params }, { admin }) => ({ results: await admin.roomDeletions.ofRoom(params.roomId) }),
)

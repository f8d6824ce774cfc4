import { endpoint } from '../../../http/endpoint.ts'

export const isRoomBlocked = endpoint(
  'GET /_synapse/admin/v1/rooms/{roomId}/block',
  { auth: 'admin' },
  async ({ params }, { admin }) => {
    const blocker = await admin.roomBlocks.blockerOf(params.roomId)
    return blocker === undefined ? { block: false } : { block: true, user_id: blocker }
  },
)

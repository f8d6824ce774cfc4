import { endpoint } from '../../../http/endpoint.ts'

export const listRoomMembers = endpoint(
  'GET /_synapse/admin/v1/rooms/{roomId}/members',
  { auth: 'admin' },
  async ({ params }, { admin }) => {
    const members = await admin.rooms.members(params.roomId)
    return { members, total: members.length }
  },
)

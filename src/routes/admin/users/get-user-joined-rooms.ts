import { endpoint } from '../../../http/endpoint.ts'

export const getUserJoinedRooms = endpoint(
  'GET /_synapse/admin/v1/users/{userId}/joined_rooms',
  { auth: 'admin' },
  async ({ params }, { admin }) => {
    const rooms = await admin.users.memberships(params.userId)
    const joined = rooms.flatMap(({ roomId, membership }) => (membership === 'join' ? [roomId] : []))
    return { joined_rooms: joined, total: joined.length }
  },
)

import { endpoint } from '../../../http/endpoint.ts'

export const getUserMemberships = endpoint(
  'GET /_synapse/admin/v1/users/{userId}/memberships',
  { auth: 'admin' },
  async ({ params }, { admin }) => {
    const rooms = await admin.users.memberships(params.userId)
    return { memberships: Object.fromEntries(rooms.map(({ roomId, membership }) => [roomId, membership])) }
  },
)

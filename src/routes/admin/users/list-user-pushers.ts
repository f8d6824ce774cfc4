import { endpoint } from '../../../http/endpoint.ts'

export const listUserPushers = endpoint(
  'GET /_synapse/admin/v1/users/{userId}/pushers',
  { auth: 'admin' },
  async ({ params }, { admin }) => {
    await admin.users.get(params.userId)
    return { pushers: [], total: 0 }
  },
)

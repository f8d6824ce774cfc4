import { endpoint } from '../../../http/endpoint.ts'

export const listUserPushers = endpoint(
  'GET /_synapse/admin/v1/users/{userId}/pushers',
  { auth: 'admin' },
  async ({ params }, { admin, pushers }) => {
    const list = await pushers.list(await admin.users.numberOf(params.userId))
    return { pushers: list, total: list.length }
  },
)

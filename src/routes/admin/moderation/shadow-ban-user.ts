import { endpoint } from '../../../http/endpoint.ts'

export const shadowBanUser = endpoint(
  'POST /_synapse/admin/v1/users/{userId}/shadow_ban',
  { auth: 'admin' },
  async ({ requester, params }, { admin }) => {
    await admin.restraints.setShadowBan(requester, params.userId, true)
    return {}
  },
)

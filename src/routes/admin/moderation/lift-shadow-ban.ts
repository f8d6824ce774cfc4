import { endpoint } from '../../../http/endpoint.ts'

export const liftShadowBan = endpoint(
  'DELETE /_synapse/admin/v1/users/{userId}/shadow_ban',
  { auth: 'admin' },
  async ({ requester, params }, { admin }) => {
    await admin.restraints.setShadowBan(requester, params.userId, false)
    return {}
  },
)

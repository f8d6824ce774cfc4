import { endpoint } from '../../../http/endpoint.ts'

export const deleteUserRateLimit = endpoint(
  'DELETE /_synapse/admin/v1/users/{userId}/override_ratelimit',
  { auth: 'admin' },
  async ({ params }, { admin, rateLimitOverrides }) => {
    await rateLimitOverrides.remove(await admin.users.numberOf(params.userId))
    return {}
  },
)

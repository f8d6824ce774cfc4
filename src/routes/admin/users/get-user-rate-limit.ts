import { endpoint } from '../../../http/endpoint.ts'

export const getUserRateLimit = endpoint(
  'GET /_synapse/admin/v1/users/{userId}/override_ratelimit',
  { auth: 'admin' },
  async ({ params }, { admin, rateLimitOverrides }) => {
    const own = rateLimitOverrides.get(await admin.users.numberOf(params.userId))
    return own === undefined ? {} : { messages_per_second: own.per_second, burst_count: own.burst }
  },
)

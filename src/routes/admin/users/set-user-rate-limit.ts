import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Count = Type.Integer({ minimum: 0, maximum: 1_000_000 })

const Body = Type.Object({ messages_per_second: Type.Optional(Count), burst_count: Type.Optional(Count) })

export const setUserRateLimit = endpoint(
  'POST /_synapse/admin/v1/users/{userId}/override_ratelimit',
  { auth: 'admin', body: Body, bodyOptional: true },
  async ({ params, body }, { admin, rateLimitOverrides }) => {
    const { messages_per_second = 0, burst_count = 0 } = body
    // A limit has a burst of at least one, or the user could not send at all.
    const burst = messages_per_second === 0 ? burst_count : Math.max(burst_count, 1)
    await rateLimitOverrides.set(await admin.users.numberOf(params.userId), { per_second: messages_per_second, burst })
    return { messages_per_second, burst_count: burst }
  },
)

import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({ valid_until_ms: Type.Optional(Type.Union([Type.Integer(), Type.Null()])) })

export const loginAsUser = endpoint(
  'POST /_synapse/admin/v1/users/{userId}/login',
  { auth: 'admin', grave: true, body: Body, bodyOptional: true },
  async ({ requester, params, body }, { admin }) => {
    const { accessToken } = await admin.users.loginAs(requester, params.userId, body.valid_until_ms ?? undefined)
    return { access_token: accessToken }
  },
)

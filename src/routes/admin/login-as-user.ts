import { ProtocolError } from '../../core/errors.ts'
import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'

const Body = Type.Object({ valid_until_ms: Type.Optional(Type.Union([Type.Integer(), Type.Null()])) })

export const loginAsUser = endpoint(
  'POST /_synapse/admin/v1/users/{userId}/login',
  { auth: 'admin', body: Body, bodyOptional: true },
  async ({ requester, params, body }, { admin }) => {
    if (body.valid_until_ms !== undefined && body.valid_until_ms !== null) {
      throw new ProtocolError('M_INVALID_PARAM', 'Such a login ends when it is logged out: leave `valid_until_ms` out.')
    }
    return { access_token: (await admin.users.loginAs(requester, params.userId)).accessToken }
  },
)

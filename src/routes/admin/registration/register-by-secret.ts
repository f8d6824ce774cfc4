import { ProtocolError } from '../../../core/errors.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({
  nonce: Type.String(),
  username: Type.String(),
  displayname: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  password: Type.String(),
  admin: Type.Optional(Type.Boolean()),
  user_type: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  mac: Type.String(),
})

export const registerBySecret = endpoint(
  'POST /_synapse/admin/v1/register',
  { auth: 'none', limited: 'registration', body: Body },
  async ({ body }, { admin, config }) => {
    const { displayname: displayName, admin: isAdmin = false, user_type, ...rest } = body
    if (typeof user_type === 'string')
      throw new ProtocolError('M_INVALID_PARAM', 'This server knows no types of users.')
    const { userId, accessToken, deviceId } = await admin.sharedSecret.register({
      ...rest,
      displayName: displayName ?? undefined,
      isAdmin,
    })
    return { user_id: userId, home_server: config.server_name, access_token: accessToken, device_id: deviceId }
  },
)

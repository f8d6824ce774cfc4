import { ProtocolError } from '../../core/errors.ts'
import { Type } from '../../core/shapes.ts'
import { AnyObject, endpoint } from '../../http/endpoint.ts'
import { loginAnswer } from './login-answer.ts'

const Query = Type.Object({
  kind: Type.Optional(Type.Unsafe<'user' | 'guest'>({ type: 'string', enum: ['user', 'guest'] })),
})

const Body = Type.Object({
  auth: Type.Optional(AnyObject),
  username: Type.Optional(Type.String()),
  password: Type.Optional(Type.String()),
  device_id: Type.Optional(Type.String()),
  initial_device_display_name: Type.Optional(Type.String()),
  inhibit_login: Type.Optional(Type.Boolean()),
})

export const register = endpoint(
  'POST C/register',
  {
    auth: 'none',
    limited: 'registration',
    query: Query,
    body: Body,
    bodyOptional: true,
    async uia({ query, body, isForwarded }, { registration }) {
      if (query.kind === 'guest') return undefined
      const flows = await registration.flows(isForwarded)
      await registration.check({
        username: body.username,
        password: body.password,
        device: { deviceId: body.device_id, displayName: body.initial_device_display_name },
      })
      return flows
    },
  },
  async ({ body, uia, isForwarded }, { registration, config }) => {
    const { username, password, device_id, initial_device_display_name, inhibit_login } = body
    if (uia === undefined) {
      const guest = await registration.registerGuest(initial_device_display_name, isForwarded)
      return loginAnswer(config, guest.userId, guest.issued)
    }
    if (password === undefined) throw new ProtocolError('M_MISSING_PARAM', "Key 'password' is missing.")
    const device = inhibit_login ? undefined : { deviceId: device_id, displayName: initial_device_display_name }
    const { userId, issued } = await registration.register({ username, password, device }, uia)
    return loginAnswer(config, userId, issued)
  },
)

import { ProtocolError } from '../../../core/errors.ts'
import { Type } from '../../../core/shapes.ts'
import { Details, endpoint } from '../../../http/endpoint.ts'
import { APPSERVICE_TYPE, requireAppservice } from './appservice-type.ts'
import { loginAnswer } from './login-answer.ts'
import { onlyOauth } from './only-oauth.ts'

const Body = Type.Object({
  type: Type.String(),
  identifier: Type.Optional(Details),
  user: Type.Optional(Type.String()),
  password: Type.Optional(Type.String()),
  token: Type.Optional(Type.String()),
  device_id: Type.Optional(Type.String()),
  initial_device_display_name: Type.Optional(Type.String()),
  refresh_token: Type.Optional(Type.Boolean()),
})

/** The second is how some deployed clients spell it. */
const JWT_TYPES: readonly string[] = ['org.matrix.login.jwt', 'm.login.jwt']

export const login = endpoint(
  'POST C/login',
  { auth: 'appservice-optional', limited: 'login', body: Body },
  async (request, { logins, jwtLogins, appservices, config }) => {
    const { body } = request
    const { type, token, device_id, initial_device_display_name, refresh_token: canRefresh, ...credentials } = body
    const from = { ip: request.ip, languages: request.acceptLanguage }
    const device = { deviceId: device_id, displayName: initial_device_display_name, canRefresh, from }
    if (type === APPSERVICE_TYPE) {
      const service = requireAppservice(request)
      const { userId, ...issued } = await appservices.accounts.login(service, credentials, device)
      return loginAnswer(config, userId, issued)
    }
    if (!config.oauth.legacy_login) throw onlyOauth()
    if (type === 'm.login.token') {
      if (token === undefined) throw new ProtocolError('M_MISSING_PARAM', "Key 'token' is missing.")
      const { userId, ...issued } = await logins.byToken(token, device)
      return loginAnswer(config, userId, issued)
    }
    if (JWT_TYPES.includes(type) && jwtLogins.isEnabled) {
      if (token === undefined) throw new ProtocolError('M_MISSING_PARAM', "Key 'token' is missing.")
      const { userId, ...issued } = await logins.byProof(await jwtLogins.ownerOf(token), device)
      return loginAnswer(config, userId, issued)
    }
    if (type !== 'm.login.password') {
      throw new ProtocolError('M_UNKNOWN', 'This server does not know this type of login.', { status: 400 })
    }
    const { userId, ...issued } = await logins.byPassword(credentials, device, request.ip)
    return loginAnswer(config, userId, issued)
  },
)

import { ProtocolError } from '../../../core/errors.ts'
import type { JsonObject } from '../../../core/json.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import type { RegistrationCall } from '../../../domain/accounts/finished-registrations.ts'
import type { AccountWish } from '../../../domain/accounts/registration.ts'
import { sessionEnded } from '../../../domain/accounts/uia-sessions.ts'
import { Details, endpoint } from '../../../http/endpoint.ts'
import { APPSERVICE_TYPE, requireAppservice } from '../session/appservice-type.ts'
import { loginAnswer } from '../session/login-answer.ts'
import { onlyOauth } from '../session/only-oauth.ts'

const Query = Type.Object({
  kind: Type.Optional(Type.Unsafe<'user' | 'guest'>({ type: 'string', enum: ['user', 'guest'] })),
})

const Body = Type.Object({
  type: Type.Optional(Type.String()),
  auth: Type.Optional(Details),
  username: Type.Optional(Type.String()),
  password: Type.Optional(Type.String()),
  device_id: Type.Optional(Type.String()),
  initial_device_display_name: Type.Optional(Type.String()),
  inhibit_login: Type.Optional(Type.Boolean()),
  refresh_token: Type.Optional(Type.Boolean()),
  guest_access_token: Type.Optional(Type.String()),
})

function wishOf(body: Static<typeof Body>): AccountWish {
  const { username, password, device_id, initial_device_display_name, refresh_token, guest_access_token } = body
  const device = { deviceId: device_id, displayName: initial_device_display_name, canRefresh: refresh_token }
  return { username, password, device, guestToken: guest_access_token }
}

/** The call's session, if it continues one, and its body. */
function callOf({ auth, ...body }: Static<typeof Body>): RegistrationCall | undefined {
  return typeof auth?.session === 'string' ? { session: auth.session, body: { ...body } as JsonObject } : undefined
}

export const register = endpoint(
  'POST C/register',
  {
    auth: 'appservice-optional',
    limited: 'registration',
    query: Query,
    body: Body,
    bodyOptional: true,
    async uia({ query, body, isForwarded }, { registration, config }) {
      if (body.type === APPSERVICE_TYPE) return undefined
      if (!config.oauth.legacy_login) throw onlyOauth()
      if (query.kind === 'guest') return undefined
      const call = callOf(body)
      if (call !== undefined && (await registration.finished.find(call))) return undefined
      const flows = await registration.flows(isForwarded)
      await registration.check(wishOf(body))
      return flows
    },
  },
  async (request, { registration, appservices, config }) => {
    const { body, query, uia, isForwarded } = request
    const logsIn = body.inhibit_login !== true
    if (body.type === APPSERVICE_TYPE) {
      const { username, device } = wishOf(body)
      if (username === undefined) throw new ProtocolError('M_MISSING_PARAM', "Key 'username' is missing.")
      const made = await appservices.accounts.register(requireAppservice(request), { username, device, logsIn })
      return loginAnswer(config, made.userId, made.issued)
    }
    if (query.kind === 'guest') {
      const guest = await registration.registerGuest(body.initial_device_display_name, isForwarded)
      return loginAnswer(config, guest.userId, guest.issued)
    }
    const call = callOf(body)
    if (uia === undefined) {
      const finished = call && (await registration.finished.find(call))
      if (finished === undefined) throw sessionEnded()
      return loginAnswer(config, finished.userId, await registration.finished.repeat(finished, body.refresh_token))
    }
    const { password } = body
    if (password === undefined) throw new ProtocolError('M_MISSING_PARAM', "Key 'password' is missing.")
    const { userId, issued } = await registration.register(
      { ...wishOf(body), password, logsIn, call, from: { ip: request.ip, userAgent: request.userAgent } },
      uia,
    )
    return loginAnswer(config, userId, issued)
  },
)

import { ProtocolError } from '../../core/errors.ts'
import { Type } from '../../core/shapes.ts'
import { TOKEN_PATH } from '../../domain/oauth/addresses.ts'
import type { Services } from '../../domain/services.ts'
import { endpoint, type RawReply } from '../../http/endpoint.ts'
import { clientAnswer, clientAnswerOf, isForm, oauthError, passOn } from './answer.ts'

/** The token endpoint. Sessions are refreshed without the authorisation server, which need not even be loaded. */
export const issueToken = endpoint(
  'POST /_hearth/oauth/token',
  { auth: 'none', limited: 'other', body: Type.Object({}), forms: true },
  async (request, services) => {
    const form = new URLSearchParams(request.bodyText)
    if (isForm(request) && form.get('grant_type') === 'refresh_token') return refresh(form, services)
    return clientAnswerOf(await passOn(services, request, { method: 'POST', path: TOKEN_PATH, body: request.bodyText }))
  },
)

async function refresh(form: URLSearchParams, { oauth }: Services): Promise<RawReply> {
  if (new Set(form.keys()).size < form.size) return oauthError('invalid_request', 'A parameter is there twice.')
  const token = form.get('refresh_token')
  const clientId = form.get('client_id')
  if (!token || !clientId) return oauthError('invalid_request', 'Both refresh_token and client_id are needed.')
  const scope = form.get('scope') ?? undefined
  try {
    if (scope !== undefined && !(await oauth.sessions.covers(token, scope))) {
      return oauthError('invalid_scope', 'A refreshed session has the scope that it had before.')
    }
    return clientAnswer(await oauth.sessions.renew(token, clientId))
  } catch (error) {
    if (!(error instanceof ProtocolError) || error.status >= 500) throw error
    // Apps take any refusal for the end of the session, and delete their keys. A locked account may be unlocked.
    if (error.errcode === 'M_USER_LOCKED') return oauthError('temporarily_unavailable', error.message, 503)
    return oauthError('invalid_grant', error.message)
  }
}

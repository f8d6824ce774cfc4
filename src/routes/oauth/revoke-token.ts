import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { clientAnswer, isForm, oauthError } from './answer.ts'

/** Ends a session (RFC 7009). Whoever has a token may end it, whichever client they name: so can those who find it leaked. */
export const revokeToken = endpoint(
  'POST /_hearth/oauth/revoke',
  { auth: 'none', limited: 'other', body: Type.Object({}), forms: true },
  async (request, { oauth }) => {
    const tokens = new URLSearchParams(request.bodyText).getAll('token')
    const [token] = tokens
    if (!isForm(request) || !token || tokens.length > 1) {
      return oauthError('invalid_request', 'Send a form with one token.')
    }
    await oauth.sessions.revoke(token)
    return clientAnswer({})
  },
)

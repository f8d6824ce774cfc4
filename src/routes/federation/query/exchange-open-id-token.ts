import { ProtocolError } from '../../../core/errors.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({ access_token: Type.Optional(Type.String()) })

export const exchangeOpenIdToken = endpoint(
  'GET F/v1/openid/userinfo',
  { auth: 'none', limited: 'federation', query: Query },
  async ({ query }, { openIdTokens }) => {
    const { access_token: token = '' } = query
    if (token === '') throw new ProtocolError('M_MISSING_TOKEN', "Query parameter 'access_token' is missing.")
    const sub = await openIdTokens.userOf(token)
    if (sub === undefined) throw new ProtocolError('M_UNKNOWN_TOKEN', 'This OpenID token is not good here.')
    return { sub }
  },
)

import { AnyObject, endpoint } from '../../../http/endpoint.ts'
import { requireOwn } from '../own-user.ts'

export const requestOpenIdToken = endpoint(
  'POST C/user/{userId}/openid/request_token',
  { auth: 'user', limited: 'other', body: AnyObject, bodyOptional: true },
  async ({ requester, params, dialect }, { openIdTokens, config }) => {
    requireOwn(requester, params.userId)
    const { accessToken, expiresIn } = await openIdTokens.issue(requester)
    return {
      access_token: accessToken,
      token_type: 'Bearer',
      [`${dialect}_server_name`]: config.server_name,
      expires_in: expiresIn,
    }
  },
)

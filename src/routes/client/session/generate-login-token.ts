import { ProtocolError } from '../../../core/errors.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { AuthBody, ownProof } from '../../../http/uia.ts'

/** Rate-limited like logins, because each token allows one. */
export const generateLoginToken = endpoint(
  'POST C1/login/get_token',
  {
    auth: 'user',
    suspended: true,
    limited: 'login',
    body: AuthBody,
    bodyOptional: true,
    async uia(request, services) {
      if (services.config.login_tokens.from_session) return ownProof(request, services)
      throw new ProtocolError('M_UNRECOGNIZED', 'Clients of this server cannot let others log in.')
    },
  },
  async ({ requester }, { loginTokens }) => {
    const { token, expiresInMs } = await loginTokens.issue(requester.userNid)
    return { login_token: token, expires_in_ms: expiresInMs }
  },
)

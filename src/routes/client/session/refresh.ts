import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const refresh = endpoint(
  'POST C/refresh',
  { auth: 'none', limited: 'other', body: Type.Object({ refresh_token: Type.String() }) },
  async ({ body }, { tokenRenewal }) => {
    const { accessToken, refreshToken, expiresInMs } = await tokenRenewal.renew(body.refresh_token)
    return {
      access_token: accessToken,
      refresh_token: refreshToken,
      ...(expiresInMs !== undefined && { expires_in_ms: expiresInMs }),
    }
  },
)

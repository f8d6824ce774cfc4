import type { Config } from '../../../config/schema.ts'
import type { UserId } from '../../../core/ids.ts'
import type { Issued } from '../../../domain/accounts/issue-token.ts'

/** The answer of register and login about the new session. `home_server` is for clients of the first releases. */
export function loginAnswer(config: Pick<Config, 'server_name'>, userId: UserId, issued: Issued | undefined): object {
  return {
    user_id: userId,
    home_server: config.server_name,
    ...(issued && {
      access_token: issued.accessToken,
      device_id: issued.deviceId,
      ...(issued.refreshToken !== undefined && { refresh_token: issued.refreshToken }),
      ...(issued.expiresInMs !== undefined && { expires_in_ms: issued.expiresInMs }),
    }),
  }
}

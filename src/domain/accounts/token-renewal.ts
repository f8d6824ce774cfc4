import { ProtocolError } from '../../core/errors.ts'
import { endDeviceTokens, lockRefreshToken, renewToken } from '../../store/accounts/tokens.ts'
import type { Database } from '../../store/db/db.ts'
import { hashToken } from '../opaque-tokens.ts'
import { isRefreshToken, newAccessToken, newRefreshToken } from './access-tokens.ts'
import { type TokenDeps, tokenLifetimeMs } from './issue-token.ts'
import { accountLocked } from './requester.ts'
import type { Sessions } from './sessions.ts'

export interface Renewed {
  readonly userNid: number
  readonly deviceId: string
  readonly accessToken: string
  readonly refreshToken: string
  readonly expiresInMs: number | undefined
}

/** Refreshes access tokens (client-server API, "Refreshing access tokens"). */
export interface TokenRenewal {
  /**
   * A new access token and a new refresh token for the device. The old refresh token stays valid until one of the new tokens is used, in
   * case the answer is lost. If it is used after that, two clients have it: the device is logged out, softly.
   * A session that came from OAuth is renewed by its client (`oauthClient`), and others only without one.
   * @throws ProtocolError `M_UNKNOWN_TOKEN`, with `soft_logout` if the device can log in again; `M_USER_DEACTIVATED`, `M_USER_LOCKED`
   */
  renew(refreshToken: string, oauthClient?: string): Promise<Renewed>
}

function unknownToken(): ProtocolError {
  return new ProtocolError('M_UNKNOWN_TOKEN', 'The refresh token is not known here.')
}

/** A refresh token was used again after its successor. */
export class RefreshTokenReused extends ProtocolError {
  readonly userNid: number
  readonly deviceId: string

  constructor({ userNid, deviceId }: Pick<Renewed, 'userNid' | 'deviceId'>) {
    const error = 'The refresh token was used before. Somebody else may have it: please log in again.'
    super('M_UNKNOWN_TOKEN', error, { extra: { soft_logout: true } })
    this.name = 'RefreshTokenReused'
    this.userNid = userNid
    this.deviceId = deviceId
  }
}

export function createTokenRenewal(
  deps: TokenDeps & { readonly db: Database; readonly sessions: Pick<Sessions, 'forget'> },
): TokenRenewal {
  const { db, clock, random, config, sessions } = deps
  return {
    async renew(given, oauthClient) {
      if (!isRefreshToken(given)) throw unknownToken()
      const by = hashToken(given)
      const accessToken = newAccessToken(random)
      const refreshToken = newRefreshToken(random)
      const expiresInMs = tokenLifetimeMs(config, true)
      const device = await db.tx(async (tx) => {
        const row = await lockRefreshToken(tx, by)
        if (row === undefined || (row.oauth_client ?? undefined) !== oauthClient) throw unknownToken()
        if (row.is_deactivated) throw new ProtocolError('M_USER_DEACTIVATED', 'This account has been deactivated.')
        if (row.is_locked) throw accountLocked()
        const { user_nid: userNid, device_id: deviceId } = row
        if (row.ended_at !== null) {
          await endDeviceTokens(tx, userNid, deviceId)
          return { userNid, deviceId, isReuse: true }
        }
        const createdAt = clock.now()
        const expiresAt = expiresInMs === undefined ? undefined : createdAt + expiresInMs
        const access = { hash: hashToken(accessToken), userNid, deviceId, createdAt, expiresAt }
        await renewToken(tx, { access, refresh: hashToken(refreshToken), by })
        return { userNid, deviceId, isReuse: false }
      })
      sessions.forget(device.userNid, device.deviceId)
      if (device.isReuse) throw new RefreshTokenReused(device)
      return { userNid: device.userNid, deviceId: device.deviceId, accessToken, refreshToken, expiresInMs }
    },
  }
}

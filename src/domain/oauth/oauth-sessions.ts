import type { Config } from '../../config/schema.ts'
import { createBoundedMap } from '../../core/cache.ts'
import { ProtocolError } from '../../core/errors.ts'
import { hostOf } from '../../core/oauth/client-metadata.ts'
import { lockAccount } from '../../store/accounts/accounts.ts'
import type { Database } from '../../store/db/db.ts'
import { markClientUsed } from '../../store/oauth/clients.ts'
import { findDeviceOfToken, findDevicesOfGrant, findScope, putOauthSession } from '../../store/oauth/sessions.ts'
import { lockState } from '../../store/oauth/states.ts'
import type { Devices } from '../accounts/devices.ts'
import { issueToken } from '../accounts/issue-token.ts'
import { accountLocked } from '../accounts/requester.ts'
import type { Sessions } from '../accounts/sessions.ts'
import { RefreshTokenReused, type TokenRenewal } from '../accounts/token-renewal.ts'
import type { Clock, Random } from '../clock.ts'
import { MAX_DEVICE_NAME_CHARS } from '../limits.ts'
import type { NewLoginNotes } from '../new-logins/notes.ts'
import { hashToken } from '../opaque-tokens.ts'
import type { Client } from './clients.ts'

/** The answer of the token endpoint (RFC 6749, section 5.1). */
export interface TokenAnswer {
  readonly access_token: string
  readonly token_type: 'Bearer'
  readonly expires_in: number
  readonly refresh_token: string
  readonly scope: string
}

/** What a person has granted to a client. */
export interface Granted {
  readonly userNid: number
  readonly client: Client
  readonly deviceId: string
  readonly scope: string
  readonly grantId: string
  /** Where the app is. */
  readonly ip: string
}

/** Sessions that clients get by OAuth. They are sessions like all others: a device, an access token and a refresh token. */
export interface OauthSessions {
  /**
   * Logs the device in, in one transaction with the tokens. An existing device of the user keeps its keys, and its earlier tokens end.
   * @throws ProtocolError `M_FORBIDDEN` if the grant has ended or the client was removed, `M_USER_DEACTIVATED`, `M_USER_LOCKED`
   */
  issue(granted: Granted): Promise<TokenAnswer>
  /** Whether a refresh token's session has all of this scope. */
  covers(refreshToken: string, scope: string): Promise<boolean>
  /** Renews the tokens of a session of this client. @throws ProtocolError as `TokenRenewal.renew` */
  renew(refreshToken: string, clientId: string): Promise<TokenAnswer>
  /** Ends the session of an access or refresh token, with its device. Any other text does nothing. */
  revoke(token: string): Promise<void>
  /** Ends a grant, and the sessions that came from it. */
  endGrant(grantId: string): Promise<void>
}

/** How exactly it is known when a client was last used, and of how many clients that is remembered. */
const NOTED_EVERY_MS = 5 * 60 * 1000
const NOTED_CLIENTS = 1_000

function nameOf({ metadata }: Client): string {
  return (metadata.client_name ?? hostOf(metadata)).slice(0, MAX_DEVICE_NAME_CHARS)
}

export function createOauthSessions(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly config: Pick<Config, 'sessions'>
  readonly sessions: Pick<Sessions, 'forget'>
  readonly devices: Pick<Devices, 'announce' | 'remove' | 'trim'>
  readonly tokenRenewal: TokenRenewal
  readonly newLogins: Pick<NewLoginNotes, 'note' | 'noted'>
}): OauthSessions {
  const { db, clock, sessions, devices, tokenRenewal, newLogins, config } = deps

  /** When the use of a client was noted last. */
  const notedAt = createBoundedMap<string, number>(NOTED_CLIENTS)

  const answer = (
    issued: { readonly accessToken: string; readonly expiresInMs?: number | undefined },
    refresh_token: string,
    scope: string,
  ) => ({
    access_token: issued.accessToken,
    token_type: 'Bearer' as const,
    expires_in: Math.floor((issued.expiresInMs ?? config.sessions.access_token_minutes * 60_000) / 1000),
    refresh_token,
    scope,
  })

  /** Whoever has the token: its device goes. */
  async function endIfReused(error: unknown): Promise<never> {
    if (error instanceof RefreshTokenReused) await devices.remove(error.userNid, [error.deviceId])
    throw error
  }

  return {
    async issue({ userNid, client, deviceId, scope, grantId, ip }) {
      const grantHash = hashToken(grantId)
      const issued = await db.tx(async (tx) => {
        // If its code was used twice, the grant has ended, even if that happens just now.
        if (!(await lockState(tx, { model: 'Grant', idHash: grantHash }))) {
          throw new ProtocolError('M_FORBIDDEN', 'This grant has ended.')
        }
        const account = await lockAccount(tx, userNid)
        if (account === undefined || account.deactivated_at !== null) {
          throw new ProtocolError('M_USER_DEACTIVATED', 'This account has been deactivated.')
        }
        if (account.is_locked) throw accountLocked()
        const deviceName = nameOf(client)
        const made = await issueToken(tx, deps, userNid, { deviceId, displayName: deviceName, canRefresh: true })
        await newLogins.note(tx, { userNid, deviceId, isNewDevice: made.isNewDevice, deviceName, from: { ip } })
        const now = clock.now()
        const { clientId } = client
        if (!(await putOauthSession(tx, { userNid, deviceId, clientId, scope, grantHash, createdAt: now }))) {
          throw new ProtocolError('M_FORBIDDEN', 'This client has been removed. Register it again.')
        }
        // All who sign in with one client would wait for each other for this row.
        if (now - (notedAt.get(client.clientId) ?? 0) > NOTED_EVERY_MS) await markClientUsed(tx, client.clientId, now)
        return made
      })
      const now = clock.now()
      if (now - (notedAt.get(client.clientId) ?? 0) > NOTED_EVERY_MS) notedAt.set(client.clientId, now)
      sessions.forget(userNid, deviceId)
      newLogins.noted()
      if (issued.isNewDevice) {
        await devices.announce(userNid, issued)
        await devices.trim(userNid)
      }
      return answer(issued, issued.refreshToken ?? '', scope)
    },

    async covers(refreshToken, scope) {
      const device = await findDeviceOfToken(db, hashToken(refreshToken))
      const granted = device && (await findScope(db, device.user_nid, device.device_id))
      // An unknown token is refused by its renewal.
      if (granted === undefined) return true
      const held = granted.split(' ')
      return scope.split(' ').every((each) => held.includes(each))
    },

    async renew(refreshToken, clientId) {
      const renewed = await tokenRenewal.renew(refreshToken, clientId).catch(endIfReused)
      const scope = await findScope(db, renewed.userNid, renewed.deviceId)
      return answer(renewed, renewed.refreshToken, scope ?? '')
    },

    async revoke(token) {
      const device = await findDeviceOfToken(db, hashToken(token))
      if (device !== undefined) await devices.remove(device.user_nid, [device.device_id])
    },

    async endGrant(grantId) {
      const ended = await findDevicesOfGrant(db, hashToken(grantId))
      for (const { user_nid, device_id } of ended) await devices.remove(user_nid, [device_id])
    },
  }
}

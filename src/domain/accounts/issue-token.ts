import type { Config } from '../../config/schema.ts'
import { ensureDevice } from '../../store/accounts/devices.ts'
import { insertRefreshToken, replaceToken } from '../../store/accounts/tokens.ts'
import type { Tx } from '../../store/db/db.ts'
import type { Clock, Random } from '../clock.ts'
import { MAX_DEVICE_ID_CHARS, MAX_DEVICE_NAME_CHARS, MAX_SESSIONS_PER_DEVICE } from '../limits.ts'
import type { LoginOrigin } from '../new-logins/notes.ts'
import { hashToken } from '../opaque-tokens.ts'
import { checkText } from '../text.ts'
import { newAccessToken, newRefreshToken } from './access-tokens.ts'

/** The device of a login: one that the client names, or a new one. */
export interface DeviceWish {
  readonly deviceId: string | undefined
  /** The name of a new device. An existing device keeps its name. */
  readonly displayName: string | undefined
  /** Whether the client can refresh its access token. If so it gets a short-lived one. */
  readonly canRefresh?: boolean | undefined
  /** Where the login comes from, for its owner to know. */
  readonly from?: LoginOrigin | undefined
}

/** A successful login. Its tokens are returned once and never stored. */
export interface Issued {
  readonly accessToken: string
  readonly deviceId: string
  /** Whether the device is new. If so the caller must announce it after the commit, unless the user cannot share rooms. */
  readonly isNewDevice: boolean
  readonly refreshToken?: string
  /** Undefined for an access token that does not expire. */
  readonly expiresInMs?: number
}

export interface TokenDeps {
  readonly clock: Clock
  readonly random: Random
  readonly config: Pick<Config, 'sessions'>
}

const DEVICE_ID_LETTERS = 10
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'

function newDeviceId(random: Random): string {
  return [...random.bytes(DEVICE_ID_LETTERS)].map((byte) => LETTERS[byte % LETTERS.length]).join('')
}

/** @throws ProtocolError `M_INVALID_PARAM` for a device id or name that cannot be stored */
export function checkDeviceWish({ deviceId, displayName }: DeviceWish): void {
  if (deviceId !== undefined) checkText('device_id', deviceId, MAX_DEVICE_ID_CHARS)
  if (displayName !== undefined) checkText('initial_device_display_name', displayName, MAX_DEVICE_NAME_CHARS)
}

/** The lifetime of an access token; undefined if it does not expire. */
export function tokenLifetimeMs({ sessions }: Pick<Config, 'sessions'>, canRefresh: boolean): number | undefined {
  if (canRefresh) return sessions.access_token_minutes * 60_000
  return sessions.token_lifetime_hours === 0 ? undefined : sessions.token_lifetime_hours * 3_600_000
}

/** Logs the user in on a device. Earlier tokens of the device stop working: the caller must forget them after the commit. */
export async function issueToken(tx: Tx, deps: TokenDeps, userNid: number, wish: DeviceWish): Promise<Issued> {
  const createdAt = deps.clock.now()
  const deviceId = wish.deviceId || newDeviceId(deps.random)
  const accessToken = newAccessToken(deps.random)
  const expiresInMs = tokenLifetimeMs(deps.config, wish.canRefresh === true)
  const expiresAt = expiresInMs === undefined ? undefined : createdAt + expiresInMs
  const token = { userNid, deviceId, createdAt }
  const isNewDevice = await ensureDevice(tx, { ...token, displayName: wish.displayName })
  await replaceToken(tx, { ...token, hash: hashToken(accessToken), expiresAt, sessionsKept: MAX_SESSIONS_PER_DEVICE })
  const issued = { accessToken, deviceId, isNewDevice, ...(expiresInMs !== undefined && { expiresInMs }) }
  if (wish.canRefresh !== true) return issued
  const refreshToken = newRefreshToken(deps.random)
  await insertRefreshToken(tx, { ...token, hash: hashToken(refreshToken) })
  return { ...issued, refreshToken }
}

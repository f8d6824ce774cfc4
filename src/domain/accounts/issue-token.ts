import type { Tx } from '../../store/db.ts'
import { ensureDevice } from '../../store/devices.ts'
import { replaceToken } from '../../store/tokens.ts'
import type { Clock, Random } from '../clock.ts'
import { MAX_DEVICE_ID_CHARS, MAX_DEVICE_NAME_CHARS } from '../limits.ts'
import { checkText } from '../text.ts'
import { hashAccessToken, newAccessToken } from './access-tokens.ts'

/** The device that a login is for: the client's own, or a new one. */
export interface DeviceWish {
  readonly deviceId: string | undefined
  /** The name of a new device; one that exists keeps its own. */
  readonly displayName: string | undefined
}

/** A login that was granted. The token is told once and kept nowhere. */
export interface Issued {
  readonly accessToken: string
  readonly deviceId: string
}

const DEVICE_ID_LETTERS = 10
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'

function newDeviceId(random: Random): string {
  return [...random.bytes(DEVICE_ID_LETTERS)].map((byte) => LETTERS[byte % LETTERS.length]).join('')
}

/** @throws ProtocolError `M_INVALID_PARAM` for a device id or name that cannot be kept */
export function checkDeviceWish({ deviceId, displayName }: DeviceWish): void {
  if (deviceId !== undefined) checkText('device_id', deviceId, MAX_DEVICE_ID_CHARS)
  if (displayName !== undefined) checkText('initial_device_display_name', displayName, MAX_DEVICE_NAME_CHARS)
}

/** Logs a device of the user in. The token that the device had before stops working: the caller must forget it after the commit. */
export async function issueToken(
  tx: Tx,
  deps: { readonly clock: Clock; readonly random: Random },
  userNid: number,
  wish: DeviceWish,
): Promise<Issued> {
  const createdAt = deps.clock.now()
  const deviceId = wish.deviceId || newDeviceId(deps.random)
  const accessToken = newAccessToken(deps.random)
  await ensureDevice(tx, { userNid, deviceId, displayName: wish.displayName, createdAt })
  await replaceToken(tx, { hash: Buffer.from(hashAccessToken(accessToken), 'base64'), userNid, deviceId, createdAt })
  return { accessToken, deviceId }
}

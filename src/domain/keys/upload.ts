import { ProtocolError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import { type DeviceKeys, readDeviceKeys, signingKeyOf } from '../../core/keys/device-keys.ts'
import { readFallbackKeys, readOneTimeKeys } from '../../core/keys/one-time-keys.ts'
import type { Reader, Tx } from '../../store/db/db.ts'
import { crossSigningKeysOf, storeKeySignatures } from '../../store/keys/cross-signing-keys.ts'
import { findDeviceKey, forgetSignaturesOf, forgetSignedBy, storeDeviceKey } from '../../store/keys/device-keys.ts'
import { findClash, type NamedKey, storeFallbackKeys, storeOneTimeKeys } from '../../store/keys/one-time-keys.ts'
import type { Requester } from '../accounts/requester.ts'
import { MAX_KEY_ALGORITHMS_PER_DEVICE, MAX_KEYS_PER_UPLOAD, MAX_ONE_TIME_KEYS_PER_ALGORITHM } from '../limits.ts'
import type { DeviceLists, DeviceListWrite } from './device-lists.ts'
import type { DeviceKeyCounts, KeyCounts } from './key-counts.ts'

/** The keys that a device publishes; each part is optional. */
export interface KeyUpload {
  readonly deviceKeys: JsonObject | undefined
  readonly oneTimeKeys: JsonObject
  readonly fallbackKeys: JsonObject
}

export interface KeyUploads {
  /**
   * Publishes keys of the requester's device, all or none. Keys that are published already are skipped. Returns the counts of unclaimed
   * one-time keys (client-server API, `POST keys/upload`). Signatures are stored unchecked: clients verify them.
   *
   * @throws ProtocolError `M_BAD_JSON` for keys that lack a member; `M_INVALID_PARAM` for keys that are malformed, too many, or have the
   *   name of other keys; `M_TOO_LARGE`, `M_FORBIDDEN` for a device with the name of a cross-signing key
   * @param before runs first in the same transaction, and gives devices that it has removed
   */
  upload(by: Requester, upload: KeyUpload, before?: (tx: Tx) => Promise<readonly string[]>): Promise<KeyCounts>
}

/** Well-formed keys that may differ from the stored ones. */
interface Wanted {
  readonly deviceKeys: DeviceKeys | undefined
  /** The device's keys or its own signatures on them differ. */
  readonly isRekeyed: boolean
  /** The device's keys differ, so the signatures on the old keys do not apply. */
  readonly isOther: boolean
  /** The device has another signing key: it is another device under the same id. */
  readonly isOtherDevice: boolean
  readonly oneTimeKeys: readonly NamedKey[]
  readonly fallbackKeys: readonly NamedKey[]
}

export function createKeyUploads(deps: {
  readonly db: Reader
  readonly deviceLists: Pick<DeviceLists, 'change'>
  readonly counts: DeviceKeyCounts
}): KeyUploads {
  const { db, deviceLists, counts } = deps

  async function check(by: Requester, upload: KeyUpload): Promise<Wanted> {
    const { userId, deviceId } = by
    if (deviceId === '') throw new ProtocolError('M_MISSING_PARAM', 'Keys belong to a device: name it as `device_id`.')
    if ([upload.oneTimeKeys, upload.fallbackKeys].flatMap(Object.keys).length > MAX_KEYS_PER_UPLOAD) {
      const error = `At most ${MAX_KEYS_PER_UPLOAD} keys can be uploaded at once.`
      throw new ProtocolError('M_TOO_LARGE', error, { status: 400 })
    }
    const known = await findDeviceKey(db, by.userNid, deviceId)
    const read = upload.deviceKeys && readDeviceKeys(upload.deviceKeys, { userId, deviceId })
    const before = known && signingKeyOf(known.json, deviceId)
    const isOther = read !== undefined && read.json !== known?.json
    const isRekeyed = isOther || (read !== undefined && read.signature !== known?.signature)
    const wanted = {
      deviceKeys: isRekeyed || (read && read.otherSignatures.size > 0) ? read : undefined,
      isRekeyed,
      isOther,
      isOtherDevice: read !== undefined && before !== undefined && read.ed25519 !== before,
      oneTimeKeys: readOneTimeKeys(upload.oneTimeKeys, userId),
      fallbackKeys: readFallbackKeys(upload.fallbackKeys, userId),
    }
    if (isRekeyed) await checkName(by)
    await Promise.all([checkRoom(by, wanted), wanted.isOtherDevice ? undefined : checkClash(db, by, wanted)])
    return wanted
  }

  /** Signatures name devices and cross-signing keys in the same way. */
  async function checkName({ userNid, deviceId }: Requester): Promise<void> {
    const keys = await crossSigningKeysOf(db, [userNid])
    if (!keys.some(({ public_key }) => public_key === deviceId)) return
    throw new ProtocolError('M_FORBIDDEN', 'One of your cross-signing keys has the name of this device.')
  }

  /** Counted without a lock: a burst may exceed the limit a little. */
  async function checkRoom(by: Requester, { oneTimeKeys, fallbackKeys, isOtherDevice }: Wanted): Promise<void> {
    const sent = new Map<string, number>()
    for (const { algorithm } of oneTimeKeys) sent.set(algorithm, (sent.get(algorithm) ?? 0) + 1)
    // Nothing is kept from another device under the same id.
    const known = isOtherDevice ? undefined : await counts.of(by)
    for (const [algorithm, count] of sent) {
      if (count + (known?.oneTime.get(algorithm) ?? 0) <= MAX_ONE_TIME_KEYS_PER_ALGORITHM) continue
      const error = `A device may keep ${MAX_ONE_TIME_KEYS_PER_ALGORITHM} one-time keys of an algorithm here.`
      throw new ProtocolError('M_INVALID_PARAM', error)
    }
    const fallback = fallbackKeys.map(({ algorithm }) => algorithm)
    const algorithms = new Set([
      ...(known?.oneTime.keys() ?? []),
      ...(known?.unusedFallback ?? []),
      ...sent.keys(),
      ...fallback,
    ])
    if (algorithms.size <= MAX_KEY_ALGORITHMS_PER_DEVICE) return
    const error = `A device may keep one-time keys of ${MAX_KEY_ALGORITHMS_PER_DEVICE} algorithms here.`
    throw new ProtocolError('M_INVALID_PARAM', error)
  }

  async function checkClash(reader: Reader, by: Requester, { oneTimeKeys }: Wanted): Promise<void> {
    const clash = oneTimeKeys.length === 0 ? undefined : await findClash(reader, by, oneTimeKeys)
    if (clash === undefined) return
    const name = `${clash.algorithm}:${clash.key_id}`
    throw new ProtocolError('M_INVALID_PARAM', `There is another one-time key ${name} of this device already.`)
  }

  /** Returns whether other users see different keys than before. */
  async function storeDevice(tx: Tx, by: Requester, keys: DeviceKeys, wanted: Wanted, position: number) {
    const { userNid, deviceId } = by
    if (wanted.isOther) await forgetSignaturesOf(tx, userNid, deviceId)
    const isStored = await storeDeviceKey(tx, { userNid, deviceId, ...keys })
    if (!isStored || keys.otherSignatures.size === 0) return isStored && wanted.isRekeyed
    const row = { target_nid: userNid, target: deviceId, signer_nid: userNid }
    const rows = [...keys.otherSignatures].map(([signer_key, signature]) => ({ ...row, signer_key, signature }))
    return (await storeKeySignatures(tx, rows, position)) > 0 || wanted.isRekeyed
  }

  async function store(tx: Tx, by: Requester, wanted: Wanted, position: number): Promise<DeviceListWrite<undefined>> {
    const { deviceKeys, isOtherDevice, oneTimeKeys, fallbackKeys } = wanted
    if (isOtherDevice) await forgetSignedBy(tx, by.userNid, by.deviceId)
    const [isChanged] = await Promise.all([
      deviceKeys && storeDevice(tx, by, deviceKeys, wanted, position),
      oneTimeKeys.length > 0 && storeOneTimeKeys(tx, by, oneTimeKeys),
      fallbackKeys.length > 0 && storeFallbackKeys(tx, by, fallbackKeys),
    ])
    // Another upload of the device may have been first. Then this one fails and is rolled back.
    await checkClash(tx, by, wanted)
    return { audience: isChanged ? 'sharing' : 'nobody', result: undefined, devices: [by.deviceId] }
  }

  return {
    async upload(by, upload, before) {
      const wanted = await check(by, upload)
      const isNothing = !wanted.deviceKeys && wanted.oneTimeKeys.length + wanted.fallbackKeys.length === 0
      if (isNothing && !before) return counts.of(by)
      await deviceLists.change(by.userNid, async (tx, position) => {
        const removed = (await before?.(tx)) ?? []
        const written = await store(tx, by, wanted, position)
        if (removed.length === 0) return written
        return { ...written, audience: 'sharing', devices: [by.deviceId, ...removed] }
      })
      counts.rose(by)
      return counts.of(by)
    },
  }
}

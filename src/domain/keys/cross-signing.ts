import { ProtocolError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import {
  type CrossSigningKey,
  emptySignaturesOf,
  type KeyUsage,
  masterSignatureOf,
  readCrossSigningKey,
  USAGES,
} from '../../core/keys/cross-signing-keys.ts'
import { areKeysOpen } from '../../store/accounts/account-terms.ts'
import { listDevices } from '../../store/accounts/devices.ts'
import type { Reader, Tx } from '../../store/db/db.ts'
import {
  type CrossSigningKeyRow,
  crossSigningKeysOf,
  deleteCrossSigningKeys,
  insertCrossSigningKey,
  type KeySignatureRow,
  replaceCrossSigningKey,
  storeKeySignatures,
} from '../../store/keys/cross-signing-keys.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Clock } from '../clock.ts'
import type { DeviceLists } from './device-lists.ts'

/** The keys of an upload, unparsed. */
export type CrossSigningUpload = { readonly [Usage in KeyUsage]: JsonObject | undefined }

export interface CrossSigning {
  /**
   * Whether an upload replaces or adds keys. Only a user's first keys, and a repeated upload, are accepted without authentication
   * (client-server API, `POST keys/device_signing/upload`).
   *
   * @throws ProtocolError as `upload`
   */
  replaces(by: Requester, upload: CrossSigningUpload): Promise<boolean>
  /**
   * Publishes a user's cross-signing keys, all or none.
   *
   * @param isProven whether the user has authenticated; if not, existing keys stay
   * @throws ProtocolError `M_INVALID_PARAM`, `M_INVALID_SIGNATURE`, `M_MISSING_PARAM` without a master key, `M_FORBIDDEN` for a key with
   *   the name of a device
   */
  upload(by: Requester, upload: CrossSigningUpload, isProven: boolean): Promise<void>
  /** Removes the keys of a deactivated user, and all signatures that the user made or that are on these keys. */
  removeAll(userNid: number): Promise<void>
}

/** A key that differs from the stored one. */
interface NewKey extends CrossSigningKey {
  /** The master key's signature; null for the master key itself. */
  readonly signature: string | null
  readonly emptySignatures: string | null
}

interface Checked {
  readonly keys: readonly NewKey[]
  /** Keys that a new master key has not signed. */
  readonly orphans: readonly KeyUsage[]
  /** The user's other signatures on the keys, unchecked: clients verify them. */
  readonly signatures: readonly KeySignatureRow[]
  readonly isFirst: boolean
}

export function createCrossSigning(deps: {
  readonly db: Reader
  readonly clock: Clock
  readonly deviceLists: Pick<DeviceLists, 'change'>
}): CrossSigning {
  const { db, clock, deviceLists } = deps
  /** Whether an operator has let the user replace their keys. */
  const isOpen = ({ userNid }: Requester) => areKeysOpen(db, userNid, clock.now())

  async function check(by: Requester, upload: CrossSigningUpload): Promise<Checked> {
    const stored = new Map((await crossSigningKeysOf(db, [by.userNid])).map((row) => [row.usage, row]))
    const sent = USAGES.flatMap((usage) => {
      const object = upload[usage]
      return object ? [{ object, key: readCrossSigningKey(object, usage, by.userId) }] : []
    })
    const master = sent.find(({ key }) => key.usage === 'master')?.key.publicKey ?? stored.get('master')?.public_key
    if (sent.length > 0 && master === undefined) {
      throw new ProtocolError('M_MISSING_PARAM', "Key 'master_key' is missing: you have none yet.")
    }
    const keys = sent.map(({ object, key }) => ({
      ...key,
      signature: key.usage === 'master' ? null : masterSignatureOf(object, key, by.userId, master!),
      emptySignatures: emptySignaturesOf(object, by.userId),
    }))
    await checkNames(by, keys, stored)
    const fresh = keys.filter((key) => stored.get(key.usage)?.json !== key.whole)
    const isNewMaster = fresh.some(({ usage }) => usage === 'master')
    return {
      keys: fresh,
      orphans: isNewMaster ? [...stored.keys()].filter((usage) => !keys.some((key) => key.usage === usage)) : [],
      signatures: fresh.flatMap((key) => otherSignatures(by, key, master!)),
      isFirst: !stored.has('master'),
    }
  }

  /** Signatures name devices and keys in the same way, so no two may share a name. */
  async function checkNames(
    { userNid }: Requester,
    keys: readonly CrossSigningKey[],
    stored: ReadonlyMap<KeyUsage, CrossSigningKeyRow>,
  ): Promise<void> {
    const others = [...stored.values()].filter(({ usage }) => !keys.some((key) => key.usage === usage))
    const names = [...keys.map(({ publicKey }) => publicKey), ...others.map(({ public_key }) => public_key)]
    if (new Set(names).size < names.length) {
      throw new ProtocolError('M_INVALID_PARAM', 'Each of your cross-signing keys must be another key.')
    }
    const devices = await listDevices(db, userNid)
    if (!devices.some(({ device_id }) => names.includes(device_id))) return
    throw new ProtocolError('M_FORBIDDEN', 'One of these keys is named as one of your devices.')
  }

  async function store(tx: Tx, { userNid }: Requester, checked: Checked, position: number, isProven: boolean) {
    const rows = checked.keys.map((key) => ({ userNid, ...key, json: key.whole }))
    if (isProven) await Promise.all(rows.map((row) => replaceCrossSigningKey(tx, row)))
    else if ((await Promise.all(rows.map((row) => insertCrossSigningKey(tx, row)))).includes(false)) {
      throw new ProtocolError('M_FORBIDDEN', 'Other keys were uploaded meanwhile.')
    }
    await Promise.all(checked.orphans.map((usage) => deleteCrossSigningKeys(tx, userNid, [usage])))
    if (checked.signatures.length > 0) await storeKeySignatures(tx, checked.signatures, position)
    return { audience: 'sharing' as const, result: undefined }
  }

  return {
    async replaces(by, upload) {
      const { keys, isFirst } = await check(by, upload)
      return keys.length > 0 && !isFirst && !(await isOpen(by))
    },
    async upload(by, upload, isProven) {
      const checked = await check(by, upload)
      if (checked.keys.length === 0) return
      const mayReplace = isProven || (!checked.isFirst && (await isOpen(by)))
      await deviceLists.change(by.userNid, (tx, position) => store(tx, by, checked, position, mayReplace))
    },
    async removeAll(userNid) {
      await deviceLists.change(userNid, async (tx) => {
        const hadKeys = await deleteCrossSigningKeys(tx, userNid, USAGES)
        return { audience: hadKeys ? 'sharing' : 'nobody', result: undefined }
      })
    },
  }
}

/** The user's signatures except the master key's, which is stored with the key. */
function otherSignatures({ userNid }: Requester, key: NewKey, master: string): KeySignatureRow[] {
  const row = { target_nid: userNid, target: key.publicKey, signer_nid: userNid }
  return [...key.signatures].flatMap(([signer_key, signature]) => {
    const isKept = key.usage !== 'master' && signer_key === `ed25519:${master}`
    return isKept ? [] : [{ ...row, signer_key, signature }]
  })
}

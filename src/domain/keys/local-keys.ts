import { groupBy } from '../../core/group-by.ts'
import { type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import type { Reader } from '../../store/db/db.ts'
import {
  type CrossSigningKeyRow,
  crossSigningKeysOf,
  type KeySignatureRow,
  keySignaturesOf,
} from '../../store/keys/cross-signing-keys.ts'
import { type DeviceKeyRow, deviceKeysOf, findLocalUsers } from '../../store/keys/device-keys.ts'
import type { Requester } from '../accounts/requester.ts'
import { addSignature, type KnownKeys, noKeys, type SignatureMap, writeSigned } from './known-keys.ts'

/** Users and their requested devices; an empty list means all devices. */
export type AskedKeys = ReadonlyMap<UserId, readonly string[]>

/** No user has this id. */
const NOBODY = 0

/** The keys of local users, with the signatures that the viewer may see: the user's and the viewer's own. */
export async function readLocalKeys(
  reader: Reader,
  serverName: ServerName,
  asked: AskedKeys,
  viewer: Pick<Requester, 'userId' | 'userNid'> | undefined,
): Promise<KnownKeys> {
  const known = noKeys()
  const nids = await findLocalUsers(
    reader,
    [...asked.keys()].filter((userId) => serverOf(userId) === serverName),
  )
  if (nids.size === 0) return known
  const userNids = [...nids.values()]
  const [devices, keys, signatures] = await Promise.all([
    deviceKeysOf(reader, userNids),
    crossSigningKeysOf(reader, userNids),
    keySignaturesOf(reader, userNids, viewer?.userNid ?? NOBODY),
  ])
  const devicesOf = groupBy(devices, (row) => row.user_nid)
  const keysOf = groupBy(keys, (row) => row.user_nid)
  const signaturesOf = groupBy(signatures, (row) => row.target_nid)
  for (const [userId, userNid] of nids) {
    const ids = asked.get(userId)!
    const added = addedBy(userId, viewer, signaturesOf.get(userNid) ?? [])
    const rows = (devicesOf.get(userNid) ?? []).filter(({ device_id }) => ids.length === 0 || ids.includes(device_id))
    known.devices.set(userId, new Map(rows.map((row) => [row.device_id, writeDevice(userId, row, added)])))
    const own = keysOf.get(userNid) ?? []
    const master = own.find(({ usage }) => usage === 'master')?.public_key
    for (const row of own) {
      const isSeen = row.usage !== 'user_signing' || userNid === viewer?.userNid
      if (isSeen) known[row.usage].set(userId, writeKey(userId, row, master, added))
    }
  }
  return known
}

/** Signatures that were added to a user's keys, by the key that they sign. */
type Added = ReadonlyMap<string, readonly (KeySignatureRow & { readonly signer: UserId })[]>

/** All rows are signatures by the user or the viewer. */
function addedBy(
  userId: UserId,
  viewer: Pick<Requester, 'userId' | 'userNid'> | undefined,
  rows: readonly KeySignatureRow[],
): Added {
  const signerOf = ({ signer_nid }: KeySignatureRow) => (signer_nid === viewer?.userNid ? viewer.userId : userId)
  return groupBy(
    rows.map((row) => ({ ...row, signer: signerOf(row) })),
    (row) => row.target,
  )
}

function signaturesOf(target: string, added: Added): SignatureMap {
  const signatures: SignatureMap = new Map()
  for (const { signer, signer_key, signature } of added.get(target) ?? []) {
    addSignature(signatures, signer, signer_key, signature)
  }
  return signatures
}

function writeDevice(userId: UserId, row: DeviceKeyRow, added: Added): string {
  const signatures = signaturesOf(row.device_id, added)
  if (row.signature !== '') addSignature(signatures, userId, `ed25519:${row.device_id}`, row.signature)
  return writeSigned(row.json, signatures, {
    unsigned: row.display_name === null ? {} : { device_display_name: row.display_name },
  })
}

function writeKey(userId: UserId, row: CrossSigningKeyRow, master: string | undefined, added: Added): string {
  const signatures = signaturesOf(row.public_key, added)
  if (row.signature !== null) addSignature(signatures, userId, `ed25519:${master}`, row.signature)
  return writeSigned(row.json, signatures, { empty: row.empty_signatures })
}

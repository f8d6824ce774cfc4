import { ProtocolError } from '../../core/errors.ts'
import { groupBy } from '../../core/group-by.ts'
import { type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import type { JsonObject, JsonValue } from '../../core/json.ts'
import {
  type CrossSigningKeyRow,
  crossSigningKeysOf,
  type KeySignatureRow,
  keySignaturesOf,
} from '../../store/cross-signing-keys.ts'
import type { Reader } from '../../store/db.ts'
import { type DeviceKeyRow, deviceKeysOf, findLocalUsers } from '../../store/device-keys.ts'
import { deviceListVersion } from '../../store/device-lists.ts'
import type { Requester } from '../accounts/requester.ts'
import { MAX_USERS_PER_KEY_QUERY } from '../limits.ts'
import type { Users } from '../users.ts'
import { addSignature, type KnownKeys, noKeys, type SignatureMap, writeSigned } from './known-keys.ts'
import { readRemoteKeys } from './remote-answer.ts'
import { type RemoteKeys, UNREACHABLE } from './remote-keys.ts'

/** Users with the devices that are asked for; none means all. */
export type AskedKeys = ReadonlyMap<UserId, readonly string[]>

export interface KeyQueries {
  /**
   * The keys of users and their devices, with the signatures that the requester may see: those by the user, and their own
   * (client-server API, `POST keys/query`).
   *
   * @param timeoutMs how long other servers may take
   * @throws ProtocolError `M_TOO_LARGE`
   */
  query(by: Requester, asked: AskedKeys, timeoutMs: number): Promise<{ keys: KnownKeys; failures: JsonObject }>
  /** The same for users of this server alone, with what anybody may see: for other servers. @throws ProtocolError `M_TOO_LARGE` */
  queryLocal(asked: AskedKeys): Promise<KnownKeys>
  /** All devices of one user of this server, with a version: the keys are as new as it says, or newer. */
  listOf(userId: UserId): Promise<{ version: number; keys: KnownKeys } | undefined>
}

/** Nobody: no user has this number. */
const NOBODY = 0

export function createKeyQueries(deps: {
  readonly serverName: ServerName
  readonly db: Reader
  readonly users: Users
  readonly remote: RemoteKeys
}): KeyQueries {
  const { serverName, db, users, remote } = deps

  const isLocal = (userId: UserId) => serverOf(userId) === serverName

  async function local(asked: AskedKeys, viewer: Requester | undefined): Promise<KnownKeys> {
    const known = noKeys()
    const nids = await findLocalUsers(db, [...asked.keys()].filter(isLocal))
    if (nids.size === 0) return known
    const userNids = [...nids.values()]
    const [devices, keys, signatures] = await Promise.all([
      deviceKeysOf(db, userNids),
      crossSigningKeysOf(db, userNids),
      keySignaturesOf(db, userNids, viewer?.userNid ?? NOBODY),
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

  async function fromServer(by: Requester, server: ServerName, asked: AskedKeys, timeoutMs: number) {
    const answer = await remote.query(server, Object.fromEntries(asked), timeoutMs)
    const nids = await users.intern([...asked.keys()])
    const rows = await keySignaturesOf(db, [...nids.values()], by.userNid)
    return readRemoteKeys(asked, answer, (userId, publicKey) => {
      const row = rows.find(({ target_nid, target }) => target_nid === nids.get(userId) && target === publicKey)
      return row && { signer: by.userId, keyId: row.signer_key, signature: row.signature }
    })
  }

  function checkSize(asked: AskedKeys): void {
    if (asked.size <= MAX_USERS_PER_KEY_QUERY) return
    const error = `The keys of at most ${MAX_USERS_PER_KEY_QUERY} users can be asked for at once.`
    throw new ProtocolError('M_TOO_LARGE', error, { status: 400 })
  }

  return {
    async queryLocal(asked) {
      checkSize(asked)
      return local(asked, undefined)
    },
    async listOf(userId) {
      const userNid = (await findLocalUsers(db, [userId])).get(userId)
      if (userNid === undefined) return undefined
      const version = await deviceListVersion(db, userNid)
      return { version, keys: await local(new Map([[userId, []]]), undefined) }
    },
    async query(by, asked, timeoutMs) {
      checkSize(asked)
      const others = [...asked].filter(([userId]) => !isLocal(userId))
      const failures = new Map<string, JsonValue>()
      const [keys, ...more] = await Promise.all([
        local(asked, by),
        ...[...groupBy(others, ([userId]) => serverOf(userId))].map(([server, some]) =>
          fromServer(by, server, new Map(some), timeoutMs).catch(() => {
            failures.set(server, UNREACHABLE)
            return noKeys()
          }),
        ),
      ])
      for (const other of more) mergeInto(keys, other)
      return { keys, failures: Object.fromEntries(failures) }
    },
  }
}

function mergeInto(keys: KnownKeys, other: KnownKeys): void {
  for (const [userId, devices] of other.devices) keys.devices.set(userId, devices)
  for (const [userId, key] of other.master) keys.master.set(userId, key)
  for (const [userId, key] of other.self_signing) keys.self_signing.set(userId, key)
}

/** Signatures that were added to a user's keys, by what they sign. */
type Added = ReadonlyMap<string, readonly (KeySignatureRow & { readonly signer: UserId })[]>

/** All the rows are by the user or by the viewer. */
function addedBy(userId: UserId, viewer: Requester | undefined, rows: readonly KeySignatureRow[]): Added {
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
  addSignature(signatures, userId, `ed25519:${row.device_id}`, row.signature)
  return writeSigned(row.json, signatures, row.display_name === null ? {} : { device_display_name: row.display_name })
}

function writeKey(userId: UserId, row: CrossSigningKeyRow, master: string | undefined, added: Added): string {
  const signatures = signaturesOf(row.public_key, added)
  if (row.signature !== null) addSignature(signatures, userId, `ed25519:${master}`, row.signature)
  return writeSigned(row.json, signatures)
}

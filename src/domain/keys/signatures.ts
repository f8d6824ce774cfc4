import { ProtocolError } from '../../core/errors.ts'
import { groupBy } from '../../core/group-by.ts'
import { type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../core/json.ts'
import { type KeyUsage, readCrossSigningKey, signedPartOf } from '../../core/keys/cross-signing-keys.ts'
import { signingKeyOf } from '../../core/keys/device-keys.ts'
import { invalidSignature, malformed, requireObject, signedJson } from '../../core/keys/key-offence.ts'
import { offenceIn } from '../../core/signing/canonical-json.ts'
import { verifySignature } from '../../core/signing/key.ts'
import type { Reader } from '../../store/db/db.ts'
import { crossSigningKeysOf, type KeySignatureRow, storeKeySignatures } from '../../store/keys/cross-signing-keys.ts'
import { deviceKeysOf, findLocalUsers } from '../../store/keys/device-keys.ts'
import type { Requester } from '../accounts/requester.ts'
import { MAX_KEY_QUERY_MS, MAX_SIGNED_KEYS_PER_UPLOAD } from '../limits.ts'
import type { Users } from '../users.ts'
import type { Audience, DeviceLists } from './device-lists.ts'
import type { RemoteKeys } from './remote-keys.ts'

/** Objects with new signatures, by user, then by device id or public key. */
export type SignedKeys = ReadonlyMap<UserId, JsonObject>

export interface KeySignatures {
  /**
   * Adds a user's signatures to keys: on the user's devices, by the self-signing key; on the user's master key, by devices; and on other
   * users' master keys, by the user-signing key, which nobody else sees (client-server API, `POST keys/signatures/upload`).
   *
   * @returns what was refused, by user and key; everything else was stored
   * @throws ProtocolError `M_TOO_LARGE`
   */
  upload(by: Requester, signed: SignedKeys): Promise<JsonObject>
}

/** A key that may be signed, and the keys that may sign it. */
interface Target {
  /** The JSON that signatures cover. */
  readonly json: string
  /** Public keys by their key ids. */
  readonly signers: ReadonlyMap<string, string>
}

/** Another user's master key, and the JSON that signatures cover. */
interface MasterKey {
  readonly publicKey: string
  readonly json: string
}

/** By device id or public key. */
type Targets = ReadonlyMap<string, Target>

export function createKeySignatures(deps: {
  readonly serverName: ServerName
  readonly db: Reader
  readonly users: Users
  readonly deviceLists: Pick<DeviceLists, 'change'>
  readonly remote: RemoteKeys
}): KeySignatures {
  const { serverName, db, users, deviceLists, remote } = deps

  /** The user's own keys that may be signed, and the key that signs others' master keys. */
  async function ownTargets({ userNid }: Requester): Promise<{ targets: Targets; userSigning: string | undefined }> {
    const [devices, keys] = await Promise.all([deviceKeysOf(db, [userNid]), crossSigningKeysOf(db, [userNid])])
    const keyOf = (usage: KeyUsage) => keys.find((key) => key.usage === usage)
    const targets = new Map<string, Target>()
    const selfSigners = namedKeys(keyOf('self_signing')?.public_key)
    for (const { device_id, json } of devices) targets.set(device_id, { json, signers: selfSigners })
    const master = keyOf('master')
    const signers = new Map(
      devices.flatMap(({ device_id, json }) => {
        const publicKey = signingKeyOf(json, device_id)
        return publicKey === undefined ? [] : [[`ed25519:${device_id}`, publicKey] as const]
      }),
    )
    if (master) targets.set(master.public_key, { json: signedPartOf(master.json), signers })
    return { targets, userSigning: keyOf('user_signing')?.public_key }
  }

  /** The master keys of other users. */
  async function masterKeys(userIds: readonly UserId[]): Promise<Map<UserId, MasterKey>> {
    const masters = new Map<UserId, MasterKey>()
    const local = await findLocalUsers(
      db,
      userIds.filter((userId) => serverOf(userId) === serverName),
    )
    const names = new Map([...local].map(([userId, userNid]) => [userNid, userId]))
    for (const { user_nid, usage, public_key, json } of await crossSigningKeysOf(db, [...names.keys()])) {
      if (usage === 'master') {
        masters.set(names.get(user_nid)!, { publicKey: public_key, json: signedPartOf(json) })
      }
    }
    const others = userIds.filter((userId) => serverOf(userId) !== serverName)
    await Promise.all(
      [...groupBy(others, (userId) => serverOf(userId))].map(async ([server, some]) => {
        const asked = Object.fromEntries(some.map((userId) => [userId, []]))
        const answer = await remote.query(server, asked, MAX_KEY_QUERY_MS).catch(() => undefined)
        for (const [userId, key] of answer ? readMasterKeys(some, answer) : []) masters.set(userId, key)
      }),
    )
    return masters
  }

  async function targetsOf(by: Requester, signed: SignedKeys): Promise<Map<UserId, Targets>> {
    const { targets, userSigning } = await ownTargets(by)
    const all = new Map([[by.userId, targets]])
    const signers = namedKeys(userSigning)
    const others = [...signed.keys()].filter((userId) => userId !== by.userId)
    const masters = others.length === 0 ? [] : await masterKeys(others)
    for (const [userId, { publicKey, json }] of masters) all.set(userId, new Map([[publicKey, { json, signers }]]))
    return all
  }

  async function store(by: Requester, rows: readonly KeySignatureRow[]): Promise<void> {
    const own = rows.filter(({ target_nid }) => target_nid === by.userNid)
    const others = rows.filter(({ target_nid }) => target_nid !== by.userNid)
    await deviceLists.change(by.userNid, async (tx, position) => {
      const [news, secrets] = await Promise.all([
        storeKeySignatures(tx, own, position),
        storeKeySignatures(tx, others, position),
      ])
      const audience: Audience = news > 0 ? 'sharing' : secrets > 0 ? 'self' : 'nobody'
      return { audience, result: undefined }
    })
  }

  return {
    async upload(by, signed) {
      const count = [...signed.values()].reduce((sum, objects) => sum + Object.keys(objects).length, 0)
      if (count > MAX_SIGNED_KEYS_PER_UPLOAD) {
        const error = `At most ${MAX_SIGNED_KEYS_PER_UPLOAD} signed keys can be uploaded at once.`
        throw new ProtocolError('M_TOO_LARGE', error, { status: 400 })
      }
      const targets = await targetsOf(by, signed)
      const nids = await users.intern([...targets.keys()])
      const rows: KeySignatureRow[] = []
      const failures = new Map<UserId, Map<string, JsonObject>>()
      for (const [userId, objects] of signed) {
        for (const [key, object] of Object.entries(objects)) {
          try {
            for (const [signer_key, signature] of goodSignatures(by, targets.get(userId)?.get(key), object)) {
              rows.push({
                target_nid: nids.get(userId)!,
                target: key,
                signer_nid: by.userNid,
                signer_key,
                signature,
              })
            }
          } catch (error) {
            if (!(error instanceof ProtocolError)) throw error
            failures.set(userId, (failures.get(userId) ?? new Map()).set(key, error.toJSON()))
          }
        }
      }
      if (rows.length > 0) await store(by, rows)
      return Object.fromEntries([...failures].map(([userId, some]) => [userId, Object.fromEntries(some)]))
    },
  }
}

function namedKeys(publicKey: string | undefined): ReadonlyMap<string, string> {
  return new Map(publicKey === undefined ? [] : [[`ed25519:${publicKey}`, publicKey]])
}

/**
 * The valid signatures on an object by keys that may sign it. Other signatures, such as the device's own, may be present and are ignored.
 * @throws ProtocolError `M_NOT_FOUND`, `M_INVALID_PARAM`, `M_INVALID_SIGNATURE`
 */
function goodSignatures(by: Requester, target: Target | undefined, object: JsonValue): [string, string][] {
  if (target === undefined) throw new ProtocolError('M_NOT_FOUND', 'There is no such key that you could sign.')
  const { signatures, ...rest } = requireObject('the key', object)
  if (signedJson('the key', rest) !== target.json) throw malformed('This is not the key as it was uploaded.')
  const own = isObject(signatures) && Object.hasOwn(signatures, by.userId) ? signatures[by.userId] : undefined
  const good = (isObject(own) ? Object.entries(own) : []).flatMap(([name, signature]): [string, string][] => {
    const publicKey = target.signers.get(name)
    if (publicKey === undefined) return []
    if (typeof signature === 'string' && verifySignature(publicKey, target.json, signature)) return [[name, signature]]
    throw invalidSignature(`The signature by ${name} is not good.`)
  })
  if (good.length === 0) throw invalidSignature('There is no signature by one of your keys that may sign this one.')
  return good
}

/** The well-formed master keys in another server's answer. */
function readMasterKeys(userIds: readonly UserId[], answer: JsonObject): Map<UserId, MasterKey> {
  const found = new Map<UserId, MasterKey>()
  const masterKeys = isObject(answer.master_keys) ? answer.master_keys : {}
  for (const userId of userIds) {
    const object = Object.hasOwn(masterKeys, userId) ? masterKeys[userId] : undefined
    try {
      if (isObject(object) && offenceIn(object) === undefined) {
        found.set(userId, readCrossSigningKey(object, 'master', userId))
      }
    } catch {
      // The user counts as having none.
    }
  }
  return found
}

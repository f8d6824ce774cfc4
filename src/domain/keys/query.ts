import { ProtocolError } from '../../core/errors.ts'
import { groupBy } from '../../core/group-by.ts'
import { type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { findUserNids } from '../../store/accounts/users.ts'
import type { Reader } from '../../store/db/db.ts'
import { keySignaturesOf } from '../../store/keys/cross-signing-keys.ts'
import { findLocalUsers } from '../../store/keys/device-keys.ts'
import { deviceListVersion } from '../../store/keys/device-lists.ts'
import type { Requester } from '../accounts/requester.ts'
import type { FanOut } from '../fan-out.ts'
import { MAX_USERS_PER_KEY_QUERY } from '../limits.ts'
import type { KnownKeys } from './known-keys.ts'
import { type AskedKeys, readLocalKeys } from './local-keys.ts'
import { readRemoteKeys } from './remote-answer.ts'
import { failuresOf, type RemoteKeys } from './remote-keys.ts'

export interface KeyQueries {
  /**
   * The keys of users and their devices, with the signatures that the requester may see: the user's and the requester's own
   * (client-server API, `POST keys/query`).
   *
   * @param timeoutMs how long other servers may take
   * @throws ProtocolError `M_TOO_LARGE`
   */
  query(by: Requester, asked: AskedKeys, timeoutMs: number): Promise<{ keys: KnownKeys; failures: JsonObject }>
  /** The same for local users alone, with the signatures that anybody may see: for other servers. @throws ProtocolError `M_TOO_LARGE` */
  queryLocal(asked: AskedKeys): Promise<KnownKeys>
  /** All devices of one local user, with a version. The keys are as new as that version, or newer. */
  listOf(userId: UserId): Promise<{ version: number; keys: KnownKeys } | undefined>
}

export function createKeyQueries(deps: {
  readonly serverName: ServerName
  readonly db: Reader
  readonly remote: RemoteKeys
  readonly fanOut: FanOut
}): KeyQueries {
  const { serverName, db, remote, fanOut } = deps

  const isLocal = (userId: UserId) => serverOf(userId) === serverName

  const local = (asked: AskedKeys, viewer: Requester | undefined) => readLocalKeys(db, serverName, asked, viewer)

  async function fromServer(by: Requester, server: ServerName, asked: AskedKeys, timeoutMs: number) {
    const answer = await remote.query(server, Object.fromEntries(asked), timeoutMs)
    const nids = await findUserNids(db, [...asked.keys()])
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
      const byServer = groupBy(others, ([userId]) => serverOf(userId))
      const admitted = await fanOut.admit(
        by,
        others.map(([userId]) => userId),
      )
      const [keys, answers] = await Promise.all([
        local(asked, by),
        fanOut.ask(by, admitted, timeoutMs, (server, leftMs) =>
          fromServer(by, server, new Map(byServer.get(server)), leftMs),
        ),
      ])
      for (const answer of answers.values()) mergeInto(keys, answer)
      return { keys, failures: failuresOf(byServer.keys(), admitted, answers) }
    },
  }
}

function mergeInto(keys: KnownKeys, other: KnownKeys): void {
  for (const [userId, devices] of other.devices) keys.devices.set(userId, devices)
  for (const [userId, key] of other.master) keys.master.set(userId, key)
  for (const [userId, key] of other.self_signing) keys.self_signing.set(userId, key)
}

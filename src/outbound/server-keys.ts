import type { ServerName } from '../core/ids.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import { offenceIn } from '../core/signing/canonical-json.ts'
import type { Failure } from './failures.ts'
import type { Federation, FederationAnswer } from './federation.ts'
import { MAX_KEY_ANSWER_BYTES, MAX_NOTARY_ANSWER_BYTES } from './limits.ts'

/** Which keys of which servers are wanted; without ids, all of them. */
export type WantedKeys = ReadonlyMap<ServerName, ReadonlySet<string>>

/** Fetches key responses of servers, unchecked. Undefined, or no list entry, if there is no answer. */
export interface KeyFetcher {
  /** Asks the server itself (server-server API, `GET K/server`). */
  own(server: string): Promise<JsonObject | undefined>
  /** Asks a notary server (`POST K/query`). */
  byNotary(notary: string, wanted: WantedKeys): Promise<readonly JsonObject[]>
}

const TIMEOUT_MS = 10_000
/** Long, because the notary asks the servers itself, and some may be gone. */
const NOTARY_TIMEOUT_MS = 30_000

export function createKeyFetcher(federation: Federation, now: () => number = Date.now): KeyFetcher {
  return {
    async own(server) {
      const request = { method: 'GET', path: 'key/v2/server' } as const
      return objectIn(
        await federation.request(server, { ...request, timeoutMs: TIMEOUT_MS, maxBytes: MAX_KEY_ANSWER_BYTES }),
      )
    },
    async byNotary(notary, wanted) {
      const criteria = { minimum_valid_until_ts: now() }
      // Some notaries fetch nothing unless a key is named.
      const keys = [...wanted].map(([server, ids]) => [
        server,
        Object.fromEntries([...ids].map((id) => [id, criteria])),
      ])
      const answer = await federation.request(notary, {
        method: 'POST',
        path: 'key/v2/query',
        body: { server_keys: Object.fromEntries(keys) },
        timeoutMs: NOTARY_TIMEOUT_MS,
        maxBytes: MAX_NOTARY_ANSWER_BYTES,
      })
      const { server_keys } = objectIn(answer) ?? {}
      return Array.isArray(server_keys) ? server_keys.filter(isObject) : []
    },
  }
}

/** The body as an object; undefined if it is not canonical JSON, since such an object cannot have been signed. */
function objectIn(answer: FederationAnswer | Failure): JsonObject | undefined {
  const body = answer.ok && answer.status === 200 ? answer.body : undefined
  return isObject(body) && offenceIn(body) === undefined ? body : undefined
}

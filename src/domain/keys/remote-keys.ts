import type { ServerName, UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'

/** Requests other servers' users' keys. The answers are checked before use. */
export interface RemoteKeys {
  /** The body of the answer to `POST user/keys/query`. Throws if none comes within `timeoutMs` (milliseconds). */
  query(
    server: ServerName,
    deviceKeys: Readonly<Record<UserId, readonly string[]>>,
    timeoutMs: number,
  ): Promise<JsonObject>
  /** The body of the answer to `POST user/keys/claim`. Throws as `query`. */
  claim(
    server: ServerName,
    oneTimeKeys: Readonly<Record<UserId, Readonly<Record<string, string>>>>,
    timeoutMs: number,
  ): Promise<JsonObject>
}

const UNREACHABLE = { status: 503, message: 'This server gave no answer.' }
const NOT_ASKED = {
  status: 429,
  message: 'This server was not asked: your requests name too many. Ask for the users of fewer servers, or later.',
}

/** The `failures` of an answer: the servers that did not answer. */
export function failuresOf(
  servers: Iterable<ServerName>,
  asked: ReadonlySet<ServerName>,
  answers: ReadonlyMap<ServerName, unknown>,
): JsonObject {
  const failed = [...servers].filter((server) => !answers.has(server))
  return Object.fromEntries(failed.map((server) => [server, asked.has(server) ? UNREACHABLE : NOT_ASKED]))
}

import type { ServerName, UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'

/** What is asked of other servers about their users' keys. Answers are not believed without a check. */
export interface RemoteKeys {
  /** The body of the answer to `POST user/keys/query`. Throws when there is none within the time. Milliseconds. */
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

/** What `failures` says of a server that gave no answer. */
export const UNREACHABLE = { status: 503, message: 'This server gave no answer.' }

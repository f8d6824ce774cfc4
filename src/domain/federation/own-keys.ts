import type { Config } from '../../config/schema.ts'
import type { JsonObject } from '../../core/json.ts'
import { signJson } from '../../core/signing/json-signature.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import type { Clock } from '../clock.ts'

/** What this server says of its own signing keys. */
export interface OwnKeys {
  /** Signed, in the shape of `GET K/server` (server-server API, "Publishing Keys"). */
  published(): JsonObject
}

/** Others ask again after this. */
const VALIDITY_MS = 24 * 3_600_000

export function createOwnKeys(deps: {
  readonly config: Pick<Config, 'server_name'>
  readonly clock: Clock
  readonly signingKey: SigningKey
}): OwnKeys {
  const { config, clock, signingKey } = deps
  return {
    published() {
      const answer: JsonObject = {
        server_name: config.server_name,
        verify_keys: { [signingKey.keyId]: { key: signingKey.publicKey } },
        old_verify_keys: {},
        valid_until_ts: clock.now() + VALIDITY_MS,
      }
      return signJson(answer, config.server_name, signingKey)
    },
  }
}

import type { Config } from '../../config/schema.ts'
import type { JsonObject } from '../../core/json.ts'
import { signJson } from '../../core/signing/json-signature.ts'
import type { Clock } from '../clock.ts'
import type { FormerKey, OwnSigningKey } from './own-signing-key.ts'

/** Publishes and rotates this server's signing keys. */
export interface OwnKeys {
  /** The signed document of `GET K/server` (server-server API, "Publishing Keys"). */
  published(): JsonObject
  /** Puts a new key into use, and returns it with the old one. */
  rotate(): Promise<{ readonly keyId: string; readonly publicKey: string; readonly former: FormerKey }>
}

/** Other servers ask again after this time. */
const VALIDITY_MS = 24 * 3_600_000

export function createOwnKeys(deps: {
  readonly config: Pick<Config, 'server_name'>
  readonly clock: Clock
  readonly signingKey: OwnSigningKey
}): OwnKeys {
  const { config, clock, signingKey } = deps
  return {
    published() {
      const former = signingKey.former.map(({ keyId, publicKey: key, expiredTs: expired_ts }) => {
        return [keyId, { key, expired_ts }] as const
      })
      const answer: JsonObject = {
        server_name: config.server_name,
        verify_keys: { [signingKey.keyId]: { key: signingKey.publicKey } },
        old_verify_keys: Object.fromEntries(former),
        valid_until_ts: clock.now() + VALIDITY_MS,
      }
      return signJson(answer, config.server_name, signingKey)
    },
    async rotate() {
      const former = await signingKey.rotate(clock.now())
      const { keyId, publicKey } = signingKey
      return { keyId, publicKey, former }
    },
  }
}

import type { Config } from '../../../config/schema.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { Requester } from '../../accounts/requester.ts'

/** What new rooms have though nobody asked for it. */
export type RoomDefaults = Pick<Config['rooms'], 'encryption' | 'policy_server'>

/** State that a new room gets unless its request has its own. Bridges know best what their rooms need. */
export function defaultState(
  { encryption, policy_server: policy }: RoomDefaults,
  { appservice }: Pick<Requester, 'appservice'>,
  joinRule: string,
): { readonly type: string; readonly content: JsonObject }[] {
  if (appservice !== undefined) return []
  const found: { readonly type: string; readonly content: JsonObject }[] = []
  if (encryption === 'all' || (encryption === 'private' && joinRule !== 'public')) {
    found.push({ type: 'm.room.encryption', content: { algorithm: 'm.megolm.v1.aes-sha2' } })
  }
  if (policy.via !== undefined && policy.public_key !== undefined) {
    const content = { via: policy.via, public_keys: { ed25519: policy.public_key } }
    found.push({ type: 'm.room.policy', content })
  }
  return found
}

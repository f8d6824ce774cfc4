import type { Config } from '../../config/schema.ts'
import { identityBaseUrl } from '../public-address.ts'

/** The keys of an invitation and where they can be checked, the service's own first (identity service API, "Invitation storage"). */
export function inviteKeys(
  config: Pick<Config, 'public_base_url' | 'listen' | 'identity'>,
  longTermKey: string,
  ephemeralKey: string,
) {
  const base = `${identityBaseUrl(config)}/_matrix/identity/v2/pubkey`
  return [
    { public_key: longTermKey, key_validity_url: `${base}/isvalid` },
    { public_key: ephemeralKey, key_validity_url: `${base}/ephemeral/isvalid` },
  ]
}

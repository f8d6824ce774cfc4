import type { Config } from '../../config/schema.ts'
import { DIALECTS } from '../../core/paths.ts'
import type { IdentityClient } from '../../outbound/identity.ts'
import type { IdentityServices } from '../identity/identity-services.ts'
import { identityBaseUrl } from '../public-address.ts'

/** Whether an identity server confirms that a key is its own. @throws Error if it cannot be reached now */
export type KeyValidity = (validityUrl: string, publicKey: string) => Promise<boolean>

/** Asks the URL that an invitation names for checking its keys. Asks our own identity service without HTTP. */
export function createKeyValidity(deps: {
  readonly config: Pick<Config, 'public_base_url' | 'listen' | 'identity'>
  /** Undefined if this process has none. */
  readonly own: Pick<IdentityServices, 'keys'> | undefined
  readonly client: IdentityClient
}): KeyValidity {
  const { own, client } = deps
  const roots = DIALECTS.flatMap((dialect) =>
    ['v2', 'api/v1'].map((generation) => `${identityBaseUrl(deps.config)}/_${dialect}/identity/${generation}/pubkey`),
  )

  return async (validityUrl, publicKey) => {
    if (own !== undefined && roots.some((root) => validityUrl === `${root}/isvalid`)) return own.keys.isValid(publicKey)
    if (own !== undefined && roots.some((root) => validityUrl === `${root}/ephemeral/isvalid`)) {
      return own.keys.isValidEphemeral(publicKey)
    }
    if (!URL.canParse(validityUrl)) return false
    const url = new URL(validityUrl)
    url.searchParams.set('public_key', publicKey)
    const { status, body } = await client.get(url.href)
    if (status >= 500) throw new Error(`${url.host} answered ${status}`)
    return status >= 200 && status <= 299 && body?.valid === true
  }
}

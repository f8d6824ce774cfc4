import type { Config } from '../../config/schema.ts'
import type { GuardedClient } from '../../outbound/http.ts'
import { openProvider } from '../../outbound/open-provider.ts'
import type { OpenIdProvider } from '../../outbound/openid-provider.ts'
import type { Clock } from '../clock.ts'
import { publicBaseUrl } from '../public-address.ts'
import { type ClaimMapping, claimMapping } from './claims.ts'

/** The URL path to which providers send browsers back. It is registered with each of them, so it never changes. */
export const CALLBACK_PATH = '/_hearth/sso/callback'

/** A provider as the operator configured it. */
export interface Provider {
  readonly id: string
  readonly name: string
  readonly brand: string | undefined
  readonly icon: string | undefined
  readonly service: OpenIdProvider
  readonly newcomerOf: ClaimMapping
  readonly takesExistingUsers: boolean
  readonly makesAccounts: boolean
  readonly omitsAuthTime: boolean
}

const DEFAULT_SCOPES = ['openid', 'profile', 'email']

export function openProviders(deps: {
  readonly config: Pick<Config, 'sso' | 'public_base_url' | 'listen'>
  readonly clock: Clock
  readonly client: Pick<GuardedClient, 'request'>
}): ReadonlyMap<string, Provider> {
  const { config } = deps
  const redirectUri = publicBaseUrl(config) + CALLBACK_PATH
  const opened = config.sso.providers.map((each): [string, Provider] => {
    const scopes = each.scopes ?? DEFAULT_SCOPES
    const client = {
      issuer: each.issuer,
      clientId: each.client_id,
      clientSecret: each.client_secret,
      scopes: scopes.includes('openid') ? scopes : ['openid', ...scopes],
      redirectUri,
    }
    const provider = {
      id: each.id,
      name: each.name,
      brand: each.brand,
      icon: each.icon,
      service: openProvider(client, { client: deps.client, now: deps.clock.now }),
      newcomerOf: claimMapping(each),
      takesExistingUsers: each.allow_existing_users === true,
      makesAccounts: each.allow_registration !== false,
      omitsAuthTime: each.omits_auth_time === true,
    }
    return [each.id, provider]
  })
  return new Map(opened)
}

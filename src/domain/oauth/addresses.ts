import type { Config } from '../../config/schema.ts'
import { DEVICE_GRANT } from '../../core/oauth/client-metadata.ts'
import { publicBaseUrl } from '../public-address.ts'

type OauthConfig = Pick<Config, 'oauth' | 'public_base_url' | 'listen'>

export const AUTHORIZE_PATH = '/_hearth/oauth/authorize'
export const TOKEN_PATH = '/_hearth/oauth/token'
export const REVOKE_PATH = '/_hearth/oauth/revoke'
export const REGISTER_PATH = '/_hearth/oauth/register'
export const DEVICE_PATH = '/_hearth/oauth/device'
export const CONSENT_PATH = '/_hearth/oauth/consent'
export const LINK_PATH = '/_hearth/account/link'
export const ACCOUNT_PATH = '/_hearth/account'

/** Where people return to from other services. */
export const SIGNED_IN_PATH = '/_hearth/account/signed-in'

/** What clients may ask the account page for (client-server API, "OAuth 2.0 account management"). */
export const ACCOUNT_ACTIONS = [
  'org.matrix.profile',
  'org.matrix.devices_list',
  'org.matrix.device_view',
  'org.matrix.device_delete',
  'org.matrix.account_deactivate',
  'org.matrix.cross_signing_reset',
] as const

export type AccountAction = (typeof ACCOUNT_ACTIONS)[number]

const LOOPBACK = /^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::|\/|$)/

/** Whether clients can sign in by OAuth: they are told addresses, which must be known, and must be https except on one machine. */
export function isOauthServed({ oauth, public_base_url }: OauthConfig): boolean {
  if (!oauth.enabled || public_base_url === undefined) return false
  return public_base_url.startsWith('https:') || LOOPBACK.test(public_base_url)
}

/** Why clients cannot sign in by OAuth, and what operators do about it, where it is not served. */
export function whyNotServed({ oauth, public_base_url }: OauthConfig): string {
  if (!oauth.enabled) return 'Clients do not sign in by OAuth here: it is switched off (`oauth.enabled`).'
  const what = public_base_url === undefined ? 'which is not set' : `which is ${public_base_url}`
  return `Clients cannot sign in by OAuth here: it needs \`public_base_url\` with https, ${what}.`
}

/** The identifier of this authorisation server. */
export const issuerOf = (config: OauthConfig): string => `${publicBaseUrl(config)}/`

/** The page on which people look after their account. */
export const accountPage = (config: OauthConfig): string => publicBaseUrl(config) + ACCOUNT_PATH

/** The address on the account page for what a client cannot do itself. */
export function accountAddress(config: OauthConfig, action: AccountAction): string {
  return `${accountPage(config)}?${new URLSearchParams({ action })}`
}

/** What this authorisation server says of itself (RFC 8414). `isOpen`: whether people can register. */
export function serverMetadata(config: OauthConfig, isOpen: boolean): object {
  const base = publicBaseUrl(config)
  const account = accountPage(config)
  return {
    issuer: issuerOf(config),
    authorization_endpoint: base + AUTHORIZE_PATH,
    token_endpoint: base + TOKEN_PATH,
    revocation_endpoint: base + REVOKE_PATH,
    registration_endpoint: base + REGISTER_PATH,
    device_authorization_endpoint: base + DEVICE_PATH,
    response_types_supported: ['code'],
    response_modes_supported: ['query', 'fragment'],
    grant_types_supported: ['authorization_code', 'refresh_token', DEVICE_GRANT],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
    scopes_supported: ['urn:matrix:client:api:*'],
    authorization_response_iss_parameter_supported: true,
    ...(isOpen && { prompt_values_supported: ['create'] }),
    account_management_uri: account,
    account_management_actions_supported: ACCOUNT_ACTIONS,
    // As clients knew these two before they were published.
    'org.matrix.msc4191.account_management_uri': account,
    'org.matrix.msc4191.account_management_actions_supported': ACCOUNT_ACTIONS,
  }
}

import type { Config } from '../../config/schema.ts'
import type { Dialect } from '../../core/paths.ts'
import { publicBaseUrl } from '../../domain/public-address.ts'
import type { SignInAttempt } from '../../domain/sso/failure.ts'

type Addresses = Pick<Config, 'public_base_url' | 'listen'>

/** Where a sign-in for a client begins. */
export function loginAddress(
  config: Addresses,
  providerId: string,
  query: { readonly redirectUrl: string; readonly action?: string | undefined },
  dialect: Dialect = 'matrix',
): string {
  const parameters = new URLSearchParams({ redirectUrl: query.redirectUrl })
  if (query.action !== undefined) parameters.set('action', query.action)
  const path = `/_${dialect}/client/v3/login/sso/redirect/${encodeURIComponent(providerId)}`
  return `${publicBaseUrl(config)}${path}?${parameters}`
}

/** Where a person begins to prove again who they are. */
export function proofAddress(config: Addresses, providerId: string, session: string): string {
  return `${publicBaseUrl(config)}/_hearth/sso/prove?${new URLSearchParams({ session, provider: providerId })}`
}

/** Where a person chooses a user name. */
export function nameAddress(config: Addresses, flow: string): string {
  return `${publicBaseUrl(config)}/_hearth/sso/name?${new URLSearchParams({ flow })}`
}

/** The address at which the person can try again. */
export function againAddress(config: Addresses, { providerId, purpose }: SignInAttempt): string {
  return purpose.kind === 'login'
    ? loginAddress(config, providerId, { redirectUrl: purpose.returnTo })
    : proofAddress(config, providerId, purpose.session)
}

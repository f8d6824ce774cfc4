import type { Config } from '../../config/schema.ts'
import { SSO_FLOW_MS } from '../../domain/limits/sso.ts'
import { publicBaseUrl } from '../../domain/public-address.ts'
import type { Services } from '../../domain/services.ts'
import { SignInFailure } from '../../domain/sso/failure.ts'
import { type RawReply, rawReply } from '../../http/endpoint.ts'
import { failurePage } from './failure-page.ts'

type Addresses = Pick<Config, 'public_base_url' | 'listen'>

/** With TLS, the cookie's name has a prefix that keeps other hosts, and plain HTTP, from setting it. */
function cookieName(config: Addresses): string {
  return publicBaseUrl(config).startsWith('https:') ? '__Host-hearth-sso' : 'hearth-sso'
}

export function cookieOf(request: { cookie(name: string): string | undefined }, config: Addresses): string | undefined {
  return request.cookie(cookieName(config))
}

/** The cookie for the return from the provider: with `Lax`, browsers send it when they follow that link, and not with other cross-site requests. */
export function ssoCookie(config: Addresses, secret: string): string {
  const name = cookieName(config)
  const isSecure = name.startsWith('__Host-')
  const attributes = ['Path=/', 'HttpOnly', 'SameSite=Lax', `Max-Age=${SSO_FLOW_MS / 1000}`]
  return [`${name}=${secret}`, ...attributes, ...(isSecure ? ['Secure'] : [])].join('; ')
}

const UNSTORED = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }

/** Redirects a browser, and sets its cookie if a secret is given. */
export function sendOn(location: string, config: Addresses, secret?: string): RawReply {
  const cookie = secret === undefined ? {} : { 'set-cookie': ssoCookie(config, secret) }
  return rawReply({ status: 302, headers: { ...UNSTORED, ...cookie, location }, body: '' })
}

/** The answer of `work`, or a page that says why the sign-in failed. */
export async function orFailurePage(
  services: Pick<Services, 'pages' | 'config'>,
  { acceptLanguage }: { readonly acceptLanguage: string | undefined },
  work: () => Promise<RawReply>,
): Promise<RawReply> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof SignInFailure)) throw error
    return failurePage(services, error, acceptLanguage)
  }
}

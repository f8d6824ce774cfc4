import type { Config } from '../../config/schema.ts'
import { SSO_FLOW_MS } from '../../domain/limits.ts'
import { publicBaseUrl } from '../../domain/public-address.ts'
import type { Services } from '../../domain/services.ts'
import { SignInFailure } from '../../domain/sso/failure.ts'
import { type RawReply, rawReply } from '../../http/endpoint.ts'
import { failurePage } from './failure-page.ts'

type Addresses = Pick<Config, 'public_base_url' | 'listen'>

/** With TLS a cookie that no other host, and nothing without TLS, can set. */
function cookieName(config: Addresses): string {
  return publicBaseUrl(config).startsWith('https:') ? '__Host-hearth-sso' : 'hearth-sso'
}

export function cookieOf(request: { cookie(name: string): string | undefined }, config: Addresses): string | undefined {
  return request.cookie(cookieName(config))
}

/** A cookie for coming back from the provider: `Lax` lets it be sent with that one link from elsewhere, and with nothing else. */
function setCookie(config: Addresses, secret: string): string {
  const name = cookieName(config)
  const isSecure = name.startsWith('__Host-')
  const attributes = ['Path=/', 'HttpOnly', 'SameSite=Lax', `Max-Age=${SSO_FLOW_MS / 1000}`]
  return [`${name}=${secret}`, ...attributes, ...(isSecure ? ['Secure'] : [])].join('; ')
}

const UNSTORED = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }

/** Sends a browser on, with a secret for its cookie where it gets one. */
export function sendOn(location: string, config: Addresses, secret?: string): RawReply {
  const cookie = secret === undefined ? {} : { 'set-cookie': setCookie(config, secret) }
  return rawReply({ status: 302, headers: { ...UNSTORED, ...cookie, location }, body: '' })
}

/** What the work answers, or a page that says why a sign-in came to nothing. */
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

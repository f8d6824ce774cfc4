import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import { WEB_SESSION_MS } from '../../domain/limits/oauth.ts'
import type { WebSession } from '../../domain/oauth/web-sessions.ts'
import { publicBaseUrl } from '../../domain/public-address.ts'
import type { Services } from '../../domain/services.ts'
import type { RawReply } from '../../http/endpoint.ts'
import type { EndpointRequest } from '../../http/request.ts'
import { openForm } from '../web/form.ts'
import { pageReply } from '../web/page.ts'

/** Who looks at a page. */
export interface Visitor {
  /** Undefined for a person who is not signed in. */
  readonly session: WebSession | undefined
  /** The secret of the session's cookie, or else of this browser's. */
  readonly secret: string
  /** Cookies to set with the page. */
  readonly cookies: readonly string[]
}

type Cookies = Pick<EndpointRequest, 'cookie'>
type Addresses = Pick<Config, 'public_base_url' | 'listen'>

const SECRET = /^[\w-]{43}$/

/** With TLS, a prefix keeps other hosts, and plain HTTP, from setting a cookie. */
export function cookieName(config: Addresses, name: string): string {
  return publicBaseUrl(config).startsWith('https:') ? `__Host-hearth-${name}` : `hearth-${name}`
}

/** `Strict` keeps a cookie from every request that another site begins, links included. */
export function setCookie(
  config: Addresses,
  name: string,
  value: string,
  maxAgeMs: number,
  sameSite: 'Lax' | 'Strict' = 'Lax',
): string {
  const full = cookieName(config, name)
  const secure = full.startsWith('__Host-') ? ['Secure'] : []
  return [
    `${full}=${value}`,
    'Path=/',
    'HttpOnly',
    `SameSite=${sameSite}`,
    `Max-Age=${maxAgeMs / 1000}`,
    ...secure,
  ].join('; ')
}

/** The cookie of a browser in which somebody has just signed in. */
export const sessionCookie = (config: Addresses, secret: string): string =>
  setCookie(config, 'account', secret, WEB_SESSION_MS)

export const noSessionCookie = (config: Addresses): string => setCookie(config, 'account', '', 0)

/** The secret of the session's cookie. */
export const sessionSecret = (request: Cookies, config: Addresses): string | undefined =>
  request.cookie(cookieName(config, 'account'))

/** The visitor by the browser's cookies. A browser without any gets one, to which its forms belong. */
export async function visitorOf(request: Cookies, { oauth, config }: Services): Promise<Visitor> {
  const secret = sessionSecret(request, config)
  const session = await oauth.webSessions.find(secret)
  if (secret !== undefined && session !== undefined) return { session, secret, cookies: [] }
  const known = request.cookie(cookieName(config, 'browser'))
  if (known !== undefined && SECRET.test(known)) return { session: undefined, secret: known, cookies: [] }
  const made = oauth.webSessions.newSecret()
  return { session: undefined, secret: made, cookies: [setCookie(config, 'browser', made, WEB_SESSION_MS)] }
}

/** Proves that something was made for this browser, and for this use. */
export function proofFor({ secret }: Pick<Visitor, 'secret'>, use: string): string {
  return createHmac('sha256', secret).update(use).digest('base64url')
}

export function isProofFor(visitor: Pick<Visitor, 'secret'>, use: string, given: string | undefined): boolean {
  const expected = Buffer.from(proofFor(visitor, use))
  const sent = Buffer.from(given ?? '')
  return sent.length === expected.length && timingSafeEqual(sent, expected)
}

const FORM = 'form'

/** The beginning of a form that only this browser can send. */
export function visitorForm(
  visitor: Visitor,
  hidden: Readonly<Record<string, string | undefined>>,
  action?: string,
): string {
  return openForm({ form: proofFor(visitor, FORM), ...hidden }, action === undefined ? {} : { action })
}

/** The beginning of a form that sends a file, and that only this browser can send. */
export function uploadForm(visitor: Visitor, action: string): string {
  return openForm({}, { action: `${action}?${new URLSearchParams({ form: proofFor(visitor, FORM) })}`, isUpload: true })
}

/** The visitor who sent a form; undefined if another site made it, or if they have signed in or out since. */
export function submittedBy(
  request: Cookies & Pick<EndpointRequest, 'fetchSite'> & { readonly body: { readonly form?: string | undefined } },
  services: Services,
): Promise<Visitor | undefined> {
  return provenBy(request, services, request.body.form)
}

/** The same, by the proof that came with a form. */
export async function provenBy(
  request: Cookies & Pick<EndpointRequest, 'fetchSite'>,
  services: Services,
  proof: string | undefined,
): Promise<Visitor | undefined> {
  if (request.fetchSite === 'cross-site' || request.fetchSite === 'same-site') return undefined
  const visitor = await visitorOf(request, services)
  return isProofFor(visitor, FORM, proof) ? visitor : undefined
}

export function expiredFormPage(
  services: Services,
  { acceptLanguage }: Pick<EndpointRequest, 'acceptLanguage'>,
): RawReply {
  return pageReply(services, 'account-form-expired.page', {}, { acceptLanguage, status: 403, isSecret: true })
}

const ACCOUNT = '/_hearth/account'
/** Pages of this server that people may be sent to after they signed in. */
const OWN_PAGES =
  /^\/_hearth\/(?:admin\/|oauth\/consent\/[\w-]{1,64}|account(?:\/[a-z-]{1,40})?(?:\?[\w.%&=*+-]{0,4000})?)$/

/** Where to go next: the page that was asked for, or else the account page. */
export function ownPage(next: string | undefined): string {
  return next !== undefined && OWN_PAGES.test(next) ? next : ACCOUNT
}

/** Where a person signs in, or makes an account, before they see a page. */
export function signInAddress(
  next: string,
  { wantsAccount, loginHint }: { readonly wantsAccount?: boolean; readonly loginHint?: string | undefined },
): string {
  const parameters = new URLSearchParams({ next })
  if (loginHint !== undefined) parameters.set('login_hint', loginHint.slice(0, 300))
  return `${ACCOUNT}/${wantsAccount ? 'sign-up' : 'sign-in'}?${parameters}`
}

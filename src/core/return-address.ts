/**
 * The address that a client chose for the browser's return from single sign-on, with a login token. It is a web page, or belongs to an app
 * with a URL scheme of its own.
 */

const MAX_CHARS = 2_000
/** Schemes that run code, read local files, or open something other than the app that signs in. */
const FORBIDDEN_SCHEMES: ReadonlySet<string> = new Set(
  'about blob chrome chrome-extension content data edge file filesystem ftp intent jar javascript mailto moz-extension resource search-ms sms smsto tel vbscript view-source ws wss'.split(
    ' ',
  ),
)

/** Whether a text is such an address: absolute, without credentials, and without a dangerous scheme. */
export function isReturnAddress(text: string): boolean {
  if (text.length > MAX_CHARS || /[\p{Cc}\s\\<>"]/u.test(text) || !URL.canParse(text)) return false
  const { protocol } = new URL(text)
  const scheme = protocol.slice(0, -1)
  if (FORBIDDEN_SCHEMES.has(scheme) || scheme.startsWith('ms-')) return false
  // The parser repairs `https:evil.example`; browsers may read it differently.
  if (/^https?$/.test(scheme) && !/^https?:\/\/[^/?#]/i.test(text)) return false
  // `https://@evil.example` has an empty user name and can mislead a reader.
  return !/^[^/?#]*:\/\/[^/?#]*@/.test(text)
}

/** Whether an address lies under one of the prefixes: same scheme, host and port, and a path that begins with the prefix's path. */
export function isUnderOneOf(address: string, prefixes: readonly string[]): boolean {
  const { protocol, host, pathname } = new URL(address)
  return prefixes.some((prefix) => {
    const trusted = new URL(prefix)
    if (protocol !== trusted.protocol || host !== trusted.host) return false
    const directory = trusted.pathname.endsWith('/') ? trusted.pathname : `${trusted.pathname}/`
    return pathname === trusted.pathname || pathname.startsWith(directory)
  })
}

/** The address with the token in its query (client-server API, "Client login via SSO"); replaces a token that is there. */
export function withLoginToken(address: string, token: string): string {
  const url = new URL(address)
  url.searchParams.delete('loginToken')
  url.searchParams.append('loginToken', token)
  return url.href
}

/** A short name of the address for people: the host of a page, the scheme of an app. */
export function nameOfAddress(address: string): string {
  const { protocol, host } = new URL(address)
  return /^https?:$/.test(protocol) ? host : protocol.slice(0, -1)
}

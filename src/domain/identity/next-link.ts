import { ProtocolError } from '../../core/errors.ts'

const MAX_CHARS = 2_000

/**
 * Checks a link to which a browser is sent after a validation: http or https, no credentials, and one of `hosts` if there are any.
 *
 * @returns the link as given, with characters that a header cannot hold escaped
 * @throws ProtocolError `M_INVALID_PARAM`
 */
export function readNextLink(text: string, hosts: readonly string[]): string {
  const isSane = text.length <= MAX_CHARS && !/[\p{Cc}\s\\<>"]/u.test(text) && /^https?:\/\/[^/?#]/i.test(text)
  const url = isSane && URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw new ProtocolError('M_INVALID_PARAM', "Key 'next_link' must be a plain http or https address.")
  }
  // `https://@evil.example` has no user name, but it looks as if it led elsewhere.
  if (/^https?:\/\/[^/?#]*@/i.test(text)) {
    throw new ProtocolError('M_INVALID_PARAM', "Key 'next_link' must not hold credentials.")
  }
  if (hosts.length > 0 && !hosts.includes(url.host)) {
    throw new ProtocolError('M_INVALID_PARAM', "Key 'next_link' leads to a host that is not allowed here.")
  }
  return /^[\x21-\x7e]+$/.test(text) ? text : url.href
}

/**
 * Adds the session's id at the very end, even of a fragment: clients that keep their own parameters in the fragment look for it there.
 * The client could not add it, because it learns the id only after it gave the link.
 */
export function withSessionId(link: string, sid: string): string {
  return `${link}${link.includes('?') ? '&' : '?'}sid=${sid}`
}

/** The kinds of third-party identifiers: an email address, or a phone number in E.164 digits without `+` (appendices, "3PID Types"). */
export type Medium = 'email' | 'msisdn'

export function isMedium(value: unknown): value is Medium {
  return value === 'email' || value === 'msisdn'
}

/** RFC 5321, 4.5.3.1: a path of 256 octets without its angle brackets, and the part before the `@`. */
const MAX_EMAIL_BYTES = 254
const MAX_LOCAL_BYTES = 64

/** A dot-atom of RFC 5322 with the letters of RFC 6531. Quoted strings are excluded, because mail systems may rewrite them. */
const LOCAL_PART = /^[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~-]+(?:\.[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~-]+)*$/u
/** A label of a domain name; neither address literals nor look-alikes of the dot. */
const LABEL = /^(?!-)[\p{L}\p{M}\p{N}-]{1,63}(?<!-)$/u

/**
 * Whether this is one bare address, `local@domain`: no display name, no comment, no second `@`, nothing that a mail system could
 * read as a different address.
 */
export function isEmailAddress(text: string): boolean {
  if (text.length > MAX_EMAIL_BYTES || Buffer.byteLength(text) > MAX_EMAIL_BYTES) return false
  const [local = '', domain = '', ...rest] = text.split('@')
  if (rest.length > 0 || Buffer.byteLength(local) > MAX_LOCAL_BYTES || !LOCAL_PART.test(local)) return false
  return isMailDomain(domain)
}

function isMailDomain(domain: string): boolean {
  // Compatibility forms (full-width letters and the like) become another name in the DNS.
  if (domain !== domain.normalize('NFKC')) return false
  const labels = domain.split('.')
  return labels.every((label) => LABEL.test(label)) && !/^\d+$/.test(labels.at(-1) ?? '')
}

/**
 * Unicode default case folding (appendices, "3PID Types": email addresses are case-folded). JavaScript has no such operation; lower,
 * upper and lower again give the same per code point, but for the dotless i, which folds to itself, and for Cherokee, whose letters
 * fold to upper case. Per code point, because lower-casing a whole word makes a final sigma of its last one.
 */
export function foldCase(text: string): string {
  let folded = ''
  for (const char of text) {
    if (char === 'ı') folded += char
    else if (/[\u13a0-\u13ff\uab70-\uabbf]/.test(char)) folded += char.toUpperCase()
    else folded += char.toLowerCase().toUpperCase().toLowerCase()
  }
  return folded
}

/** Longer than any address in any spelling. Longer texts are not folded, which would cost too much. */
const MAX_ADDRESS_CHARS = 1_000

/**
 * The normal spelling of an address, in which it is stored, compared, hashed and mailed. Never fails: a text that is not an address
 * stays a text that matches nothing.
 */
export function normaliseAddress(medium: string, text: string): string {
  if (text.length > MAX_ADDRESS_CHARS) return text
  if (medium === 'email') return foldCase(text)
  if (medium === 'msisdn') return text.replace(/^\+/, '').replace(/[\s().-]/g, '')
  return text
}

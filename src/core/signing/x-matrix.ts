import { isServerName, type ServerName } from '../ids.ts'

/** The content of an `Authorization: X-Matrix` header (server-server API, "Request Authentication"). */
export interface XMatrix {
  readonly origin: ServerName
  /** Undefined from older servers, which do not send it. */
  readonly destination: string | undefined
  readonly keyId: string
  readonly signature: string
}

const SCHEME = /^x-matrix[ \t]+/i
/** A name with a token or a quoted string. Old servers write colons outside quotes. */
const PARAM = /[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))[ \t]*(?:,|$)/y
const MAX_CHARS = 4_000

export function isXMatrix(header: string): boolean {
  return SCHEME.test(header)
}

/** The header's text. Server names and signatures contain no characters that need escaping. */
export function writeXMatrix({ origin, destination, keyId, signature }: XMatrix): string {
  const receiver = destination === undefined ? '' : `destination="${destination}",`
  return `X-Matrix origin="${origin}",${receiver}key="${keyId}",sig="${signature}"`
}

/** Reads a header; undefined if it breaks the grammar or lacks a required parameter. Unknown parameters are ignored. */
export function readXMatrix(header: string): XMatrix | undefined {
  const scheme = SCHEME.exec(header)?.[0]
  if (scheme === undefined || header.length > MAX_CHARS) return undefined
  const found = new Map<string, string>()
  PARAM.lastIndex = scheme.length
  while (PARAM.lastIndex < header.length) {
    const [, name, quoted, plain = ''] = PARAM.exec(header) ?? []
    if (name === undefined || found.has(name.toLowerCase())) return undefined
    found.set(name.toLowerCase(), quoted === undefined ? plain : quoted.replace(/\\(.)/g, '$1'))
  }
  const [origin, keyId, signature] = ['origin', 'key', 'sig'].map((name) => found.get(name))
  if (origin === undefined || keyId === undefined || signature === undefined || !isServerName(origin)) return undefined
  return { origin, keyId, signature, destination: found.get('destination') }
}

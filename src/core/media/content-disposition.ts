/**
 * Types that browsers may show inline (client-server API, "Serving inline content"): none of them can run code.
 */
const INLINE = new Set([
  'text/css',
  'text/plain',
  'text/csv',
  'application/json',
  'application/ld+json',
  'image/jpeg',
  'image/gif',
  'image/png',
  'image/apng',
  'image/webp',
  'image/avif',
  'video/mp4',
  'video/webm',
  'video/ogg',
  'video/quicktime',
  'audio/mp4',
  'audio/webm',
  'audio/aac',
  'audio/mpeg',
  'audio/ogg',
  'audio/wave',
  'audio/wav',
  'audio/x-wav',
  'audio/x-pn-wav',
  'audio/flac',
  'audio/x-flac',
])

export const MAX_FILE_NAME_CHARS = 255
const MAX_TYPE_CHARS = 255
export const UNKNOWN_TYPE = 'application/octet-stream'

/** RFC 9110, 8.3.1: type, subtype and parameters. */
const CONTENT_TYPE =
  /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+(?:\s*;\s*[\w!#$%&'*+.^`|~-]+=(?:[\w!#$%&'*+.^`|~-]+|"[ -!#-~]*"))*$/

/** A content type that is safe to send; `application/octet-stream` if it is not valid. Text without a charset gets UTF-8. */
export function readContentType(text: string | undefined): string {
  const trimmed = (text ?? '').trim()
  if (trimmed.length > MAX_TYPE_CHARS || !CONTENT_TYPE.test(trimmed)) return UNKNOWN_TYPE
  return /^text\/[^;]*$/i.test(trimmed) ? `${trimmed}; charset=utf-8` : trimmed
}

/** Control characters would break headers and terminals; marks of direction make `exe.gpj` of a program. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffd]/g

/** A file name without unsafe characters; undefined if nothing is left. */
export function readFileName(name: string | undefined): string | undefined {
  const safe = (name ?? '')
    .replace(UNSAFE, '')
    .replace(/\p{Surrogate}/gu, '')
    .trim()
  return safe === '' ? undefined : [...safe].slice(0, MAX_FILE_NAME_CHARS).join('')
}

/** `Content-Disposition` for a file: inline only if its type is harmless (RFC 6266). */
export function writeDisposition(contentType: string, fileName: string | undefined): string {
  const [type = ''] = contentType.toLowerCase().split(';')
  const kind = INLINE.has(type.trim()) ? 'inline' : 'attachment'
  if (fileName === undefined) return kind
  if (/^[\w.()+@ -]+$/.test(fileName)) return `${kind}; filename="${fileName}"`
  const escaped = encodeURIComponent(fileName).replace(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)
  return `${kind}; filename*=UTF-8''${escaped}`
}

/** The file name in another server's `Content-Disposition`, if it is valid. */
export function fileNameIn(disposition: string | undefined): string | undefined {
  if (disposition === undefined) return undefined
  const extended = /;\s*filename\*\s*=\s*utf-8'[^']*'([^;\s]+)/i.exec(disposition)?.[1]
  if (extended !== undefined) {
    try {
      return readFileName(decodeURIComponent(extended))
    } catch {
      // Then perhaps the plain one.
    }
  }
  const [, quoted, bare] = /;\s*filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s"]+))/i.exec(disposition) ?? []
  return readFileName(quoted === undefined ? bare : quoted.replace(/\\(.)/g, '$1'))
}

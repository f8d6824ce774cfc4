import { readByteRange } from '../core/media/byte-range.ts'
import { writeDisposition } from '../core/media/content-disposition.ts'
import type { Downloads, FoundMedia } from '../domain/media/downloads.ts'
import { type RawReply, rawReply } from './endpoint.ts'
import type { Wire } from './request.ts'

/** Headers that keep a file from acting with this server's origin (client-server API, "Serving inline content" and "Content repository"). */
const HARMLESS = {
  'content-security-policy':
    "sandbox; default-src 'none'; script-src 'none'; plugin-types application/pdf; style-src 'unsafe-inline'; object-src 'self';",
  'cross-origin-resource-policy': 'cross-origin',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

/** The bytes of a URI never change. A browser may keep a file for a day after its deletion. */
const CACHING = 'max-age=86400, immutable'

/** Sends a file, or the requested range of it, or 304 if the client has it already. */
export async function mediaReply(
  request: Pick<Wire, 'header'>,
  media: { readonly downloads: Pick<Downloads, 'open'> },
  found: FoundMedia,
  isPublic: boolean,
): Promise<RawReply> {
  const { bytes, contentType, fileName, digest } = found
  const etag = `"${digest.toString('base64url')}"`
  const headers = {
    ...HARMLESS,
    'content-type': contentType,
    'content-disposition': writeDisposition(contentType, fileName),
    'cache-control': `${isPublic ? 'public' : 'private'}, ${CACHING}`,
    'accept-ranges': 'bytes',
    etag,
  }
  if (isNamed(request.header('if-none-match'), etag)) return rawReply({ status: 304, headers, body: '' })
  const condition = request.header('if-range')
  const range =
    condition === undefined || condition === etag ? readByteRange(request.header('range'), bytes) : undefined
  if (range === 'unsatisfiable') {
    return rawReply({ status: 416, headers: { ...headers, 'content-range': `bytes */${bytes}` }, body: '' })
  }
  const body = await media.downloads.open(found, range)
  if (range === undefined) return rawReply({ headers: { ...headers, 'content-length': String(bytes) }, body })
  const { first, last } = range
  const partial = { 'content-range': `bytes ${first}-${last}/${bytes}`, 'content-length': String(last - first + 1) }
  return rawReply({ status: 206, headers: { ...headers, ...partial }, body })
}

function isNamed(condition: string | undefined, etag: string): boolean {
  if (condition === undefined) return false
  return condition === '*' || condition.split(',').some((each) => each.trim().replace(/^W\//, '') === etag)
}

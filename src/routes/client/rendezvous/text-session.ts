import { ProtocolError } from '../../../core/errors.ts'
import { MAX_RENDEZVOUS_BYTES } from '../../../domain/limits/rendezvous.ts'
import { type RendezvousContent, tooLarge } from '../../../domain/rendezvous/rendezvous.ts'
import { type RawReply, rawReply } from '../../../http/endpoint.ts'
import type { EndpointRequest } from '../../../http/request.ts'

/** The sessions of 2024 (MSC4108): the body is the text itself, and an ETag its revision. Clients still speak these. */

const etagOf = ({ token }: RendezvousContent): string => `"${token}"`

/** The token in `If-Match` or `If-None-Match`. */
export const tokenIn = (header: string | undefined): string | undefined =>
  header?.trim().replace(/^(?:W\/)?"(.*)"$/, '$1')

/** An answer about a session. Browsers show scripts the ETag only where it is exposed. */
export function textReply(
  status: number,
  content: RendezvousContent,
  body = '',
  contentType = 'application/json',
): RawReply {
  return rawReply({
    status,
    headers: {
      'content-type': contentType,
      'access-control-expose-headers': 'ETag',
      'cache-control': 'no-store, no-transform',
      pragma: 'no-cache',
      etag: etagOf(content),
      expires: new Date(content.expiresAt).toUTCString(),
      'last-modified': new Date(content.writtenAt).toUTCString(),
    },
    body,
  })
}

/**
 * The text in the body.
 *
 * @throws ProtocolError `M_INVALID_PARAM` for another content type, `M_TOO_LARGE`
 */
export async function textOf(request: Pick<EndpointRequest, 'header' | 'stream'>): Promise<string> {
  if (!/^text\/plain\s*(?:;|$)/i.test(request.header('content-type') ?? '')) {
    throw new ProtocolError('M_INVALID_PARAM', 'The Content-Type must be text/plain.')
  }
  if (Number(request.header('content-length') ?? 0) > MAX_RENDEZVOUS_BYTES) throw tooLarge()
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of request.stream) {
    bytes += piece.length
    if (bytes > MAX_RENDEZVOUS_BYTES) throw tooLarge()
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { isNodeProof, type PassedOn } from '../../core/signing/node-proof.ts'
import { CORS_HEADERS } from '../cors.ts'
import { LOCAL_CLIENT, ofLocalClient } from './local-client.ts'

/** The header with the proof. */
export const NODE_PROOF = 'x-hearth-node'
/** In an answer: this node did nothing with the request, because it does not serve. */
export const NOT_SERVING = 'x-hearth-not-serving'

/**
 * What listens for other nodes: it hands requests with a proof to what serves, and refuses all others.
 *
 * @param serving what serves now; undefined while this node does not
 */
export function nodeListener(parts: {
  readonly secret: string
  readonly now: () => number
  readonly serving: () => RequestListener | undefined
  /** Called for a request with a proof. */
  readonly proved: (request: IncomingMessage) => void
}): RequestListener {
  return (request, response) => {
    if (!isOfNode(parts, request)) {
      answer(response, 403, 'M_FORBIDDEN', 'Only nodes of this server may connect here: use the address for clients.')
      return
    }
    parts.proved(request)
    if (!isOfLocalClient(parts, request)) delete request.headers[LOCAL_CLIENT]
    const listener = parts.serving()
    if (listener) listener(request, response)
    else {
      response.setHeader(NOT_SERVING, '1')
      answer(response, 503, 'M_UNKNOWN', 'This node does not serve.')
    }
  }
}

/** Whether a request has the proof of another node. */
export function isOfNode(
  { secret, now }: { readonly secret: string; readonly now: () => number },
  request: IncomingMessage,
): boolean {
  return isNodeProof(secret, provenOf(request), request.headers[NODE_PROOF]?.toString(), now())
}

/** Whether the other node says that its client is on its own machine. */
function isOfLocalClient(
  { secret, now }: { readonly secret: string; readonly now: () => number },
  request: IncomingMessage,
): boolean {
  const proof = request.headers[LOCAL_CLIENT]?.toString()
  return proof !== undefined && isNodeProof(secret, ofLocalClient(provenOf(request)), proof, now())
}

function provenOf(request: IncomingMessage): PassedOn {
  // Several headers of this name are several signatures; `headers` has the first one only.
  const headers = { ...request.headers, authorization: request.headersDistinct.authorization }
  const { method, url } = request
  return passedOn({ method, url, headers })
}

/** What the proof of a request covers. The body is not part of it. */
export function passedOn(request: {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}): PassedOn {
  const { method = '', url = '', headers } = request
  const textOf = (name: string): string => [headers[name] ?? []].flat().join('\n')
  return { method, url, forwardedFor: textOf('x-forwarded-for'), authorization: textOf('authorization') }
}

/** An answer of our own, before anything else has the request. */
export function answer(
  response: ServerResponse,
  status: 403 | 408 | 503,
  errcode: 'M_FORBIDDEN' | 'M_UNKNOWN',
  error: string,
): void {
  const body = JSON.stringify({ errcode, error, ...(status === 503 && { retry_after_ms: 2_000 }) })
  response.writeHead(status, {
    ...CORS_HEADERS,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    // A body that nobody reads must not be taken for the next request.
    connection: 'close',
  })
  response.end(body)
}

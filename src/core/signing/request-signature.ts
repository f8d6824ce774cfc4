import type { JsonValue } from '../json.ts'
import { encodeCanonical } from './canonical-json.ts'

/** The signed parts of a request between servers (server-server API, "Request Authentication"). */
export interface RequestToSign {
  readonly method: string
  /** Path and query as they go over the wire. */
  readonly uri: string
  readonly origin: string
  readonly destination: string
  /** The body; undefined when there is none. */
  readonly content?: JsonValue | undefined
}

/** The text that the signature of a request covers. */
export function requestText({ content, ...request }: RequestToSign): string {
  return encodeCanonical(content === undefined ? request : { ...request, content })
}

/**
 * The same from a received body. Servers send the canonical JSON that they have signed, so it need not be encoded again. If the body is not
 * canonical, this gives a text that nobody has signed.
 */
export function requestTextFrom(body: string, request: RequestToSign): string {
  return `${BEFORE_BODY}${body}${afterBody(request)}`
}

/** The same in bytes, from a body that is not parsed yet. */
export function requestBytesFrom(body: Uint8Array, request: RequestToSign): Buffer {
  return Buffer.concat([Buffer.from(BEFORE_BODY), body, Buffer.from(afterBody(request))])
}

const BEFORE_BODY = '{"content":'

function afterBody({ method, uri, origin, destination }: RequestToSign): string {
  return `,${encodeCanonical({ destination, method, origin, uri }).slice(1)}`
}

import type { JsonValue } from '../json.ts'
import { encodeCanonical } from './canonical-json.ts'

/** A request as the server that sends it signs it (server-server API, "Request Authentication"). */
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
 * The same from a body's bytes as they came: servers send what they have signed, canonical JSON, which then need not be written
 * again. Of a body that is not canonical it is another text, which nobody has signed.
 */
export function requestTextFrom(body: string, request: RequestToSign): string {
  return `${BEFORE_BODY}${body}${afterBody(request)}`
}

/** The same in bytes, of a body that nobody has looked at yet. */
export function requestBytesFrom(body: Uint8Array, request: RequestToSign): Buffer {
  return Buffer.concat([Buffer.from(BEFORE_BODY), body, Buffer.from(afterBody(request))])
}

const BEFORE_BODY = '{"content":'

function afterBody({ method, uri, origin, destination }: RequestToSign): string {
  return `,${encodeCanonical({ destination, method, origin, uri }).slice(1)}`
}

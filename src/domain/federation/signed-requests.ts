import { ProtocolError } from '../../core/errors.ts'
import type { ServerName } from '../../core/ids.ts'
import type { JsonValue } from '../../core/json.ts'
import type { ServerPolicy } from '../../core/server-policy.ts'
import { verifySignature } from '../../core/signing/key.ts'
import { requestText, requestTextFrom } from '../../core/signing/request-signature.ts'
import { isXMatrix, readXMatrix, type XMatrix } from '../../core/signing/x-matrix.ts'
import type { Clock } from '../clock.ts'
import { MAX_REQUEST_SIGNATURES } from '../limits.ts'
import type { ServerKeyRing } from './key-ring.ts'

/** A request of another server, as it came. */
export interface SignedRequest {
  readonly method: string
  /** Path and query, untouched: what was signed is the text that was sent. */
  readonly uri: string
  /** Every `Authorization` header: a server may sign with several keys. */
  readonly authorizations: readonly string[]
  /** The body as text and as it was read; undefined when there is none. */
  readonly body: { readonly text: string; readonly content: JsonValue } | undefined
}

/** Tells which server sent a request (server-server API, "Request Authentication"). */
export interface SignedRequests {
  /**
   * @throws ProtocolError 401 `M_UNAUTHORIZED` unless the request is signed, for this server, with a key that is valid now, by the
   * one server that all of its signatures name; `M_FORBIDDEN` for a server that is shut out; what `stranger` throws
   * @param stranger called before work is done for a server of which nothing is known: anybody can make up names
   */
  originOf(request: SignedRequest, stranger: () => void): Promise<ServerName>
}

function refusal(reason: string): ProtocolError {
  return new ProtocolError('M_UNAUTHORIZED', reason)
}

export function createSignedRequests(deps: {
  readonly serverName: ServerName
  readonly clock: Clock
  readonly keys: ServerKeyRing
  readonly policy: ServerPolicy
  /** Told of each server that has proven to be itself. */
  heard(server: ServerName): void
}): SignedRequests {
  const { serverName, clock, keys, policy, heard } = deps

  function headersOf(authorizations: readonly string[]): XMatrix[] {
    const signed = authorizations.filter(isXMatrix)
    if (signed.length === 0) throw refusal('This request has to be signed by a server (Authorization: X-Matrix).')
    if (signed.length > MAX_REQUEST_SIGNATURES) throw refusal('This request has too many signatures.')
    return signed.map((header) => {
      const read = readXMatrix(header)
      if (read === undefined) throw refusal('The Authorization header is malformed.')
      return read
    })
  }

  return {
    async originOf({ method, uri, authorizations, body }, stranger) {
      const headers = headersOf(authorizations)
      const { origin } = headers[0]!
      if (headers.some((header) => header.origin !== origin)) throw refusal('The request is signed by several servers.')
      if (headers.some(({ destination }) => destination !== undefined && destination !== serverName)) {
        throw refusal(`The request is signed for another server than ${serverName}.`)
      }
      const shutOut = policy.refusalOf(origin)
      if (shutOut !== undefined) throw new ProtocolError('M_FORBIDDEN', shutOut)
      if (!keys.knows(origin)) stranger()
      const known = await keys.keysOf(
        origin,
        headers.map(({ keyId }) => keyId),
      )
      const now = clock.now()
      const request = { method, uri, origin, destination: serverName, content: body?.content }
      for (const { keyId, signature } of headers) {
        const key = known.find((each) => each.keyId === keyId && each.validUntilTs >= now)
        if (key === undefined) continue
        const isOver = (text: string) => verifySignature(key.publicKey, text, signature)
        if ((body !== undefined && isOver(requestTextFrom(body.text, request))) || isOver(requestText(request))) {
          heard(origin)
          return origin
        }
      }
      throw refusal(`No key of ${origin} that is valid now confirms the signature of this request.`)
    },
  }
}

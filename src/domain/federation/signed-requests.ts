import { ProtocolError } from '../../core/errors.ts'
import type { ServerName } from '../../core/ids.ts'
import type { JsonValue } from '../../core/json.ts'
import type { ServerPolicy } from '../../core/server-policy.ts'
import { verifySignature } from '../../core/signing/key.ts'
import { requestBytesFrom, requestText } from '../../core/signing/request-signature.ts'
import { isXMatrix, readXMatrix, type XMatrix } from '../../core/signing/x-matrix.ts'
import type { BoundMetrics } from '../bound-metrics.ts'
import type { Clock } from '../clock.ts'
import { MAX_REQUEST_SIGNATURES } from '../limits.ts'
import type { ServerKeyRing } from './key-ring.ts'
import { createRewriteBudget } from './rewrite-budget.ts'

/** A request of another server, as it came. */
export interface SignedRequest {
  readonly method: string
  /** Path and query, untouched: the signature covers the text that was sent. */
  readonly uri: string
  /** The body; undefined if there is none. */
  readonly body: SignedBody | undefined
}

export interface SignedBody {
  readonly bytes: Uint8Array
  /** Parses the body. It is called only if the signature does not fit the bytes as they came. Throws if it is no JSON. */
  read(): JsonValue
}

/** What a request's headers claim: the server that may have sent it, and the signatures to verify. */
export interface Claim {
  readonly origin: ServerName
  readonly signatures: readonly {
    readonly publicKey: string
    readonly validUntilTs: number
    readonly signature: string
  }[]
}

/** Finds out which server sent a request (server-server API, "Request Authentication"): first from its headers, then with its body. */
export interface SignedRequests {
  /**
   * Needs no body, so that no body is read for a false claim.
   *
   * @param authorizations every `Authorization` header: a server may sign with several keys
   * @param stranger called before any work is done for an unknown server, because anybody can make up names
   * @throws ProtocolError 401 `M_UNAUTHORIZED` unless the request is signed, for this server, with a key of the one server that all of
   *   its signatures name; `M_FORBIDDEN` for a blocked server; what `stranger` throws
   */
  claimOf(authorizations: readonly string[], stranger: () => void): Promise<Claim>
  /**
   * @param addressKey the address that it came from, as limits count it
   * @throws ProtocolError 401 `M_UNAUTHORIZED` unless a key that is valid now confirms the signature
   */
  confirm(claim: Claim, request: SignedRequest, addressKey: () => string): ServerName
}

function refusal(reason: string): ProtocolError {
  return new ProtocolError('M_UNAUTHORIZED', reason)
}

function unconfirmed(origin: ServerName): ProtocolError {
  return refusal(`No key of ${origin} that is valid now confirms the signature of this request.`)
}

export function createSignedRequests(deps: {
  readonly serverName: ServerName
  readonly clock: Clock
  readonly bounds: BoundMetrics
  readonly keys: ServerKeyRing
  readonly policy: ServerPolicy
  /** Called for each server that has proven its identity. */
  heard(server: ServerName): void
}): SignedRequests {
  const { serverName, clock, keys, policy, heard } = deps
  const rewrites = createRewriteBudget(deps)

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
    async claimOf(authorizations, stranger) {
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
      const signatures = headers.flatMap(({ keyId, signature }) => {
        const key = known.find((each) => each.keyId === keyId && each.validUntilTs >= now)
        return key === undefined ? [] : { publicKey: key.publicKey, validUntilTs: key.validUntilTs, signature }
      })
      if (signatures.length === 0) throw unconfirmed(origin)
      return { origin, signatures }
    },
    confirm({ origin, signatures }, { method, uri, body }, addressKey) {
      const now = clock.now()
      const inForce = signatures.filter(({ validUntilTs }) => validUntilTs >= now)
      const request = { method, uri, origin, destination: serverName }
      const isOver = (text: Uint8Array | string) =>
        inForce.some(({ publicKey, signature }) => verifySignature(publicKey, text, signature))
      if (inForce.length === 0) throw unconfirmed(origin)
      const isConfirmed =
        body === undefined
          ? isOver(requestText(request))
          : isOver(requestBytesFrom(body.bytes, request)) ||
            rewrites.allow(body.bytes.length, addressKey, () =>
              isOver(requestText({ ...request, content: body.read() })),
            )
      if (!isConfirmed) throw unconfirmed(origin)
      heard(origin)
      return origin
    },
  }
}

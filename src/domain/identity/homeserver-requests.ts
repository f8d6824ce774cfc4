import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { ServerName } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { signedText } from '../../core/signing/json-signature.ts'
import { verifySignature } from '../../core/signing/key.ts'
import { readXMatrix } from '../../core/signing/x-matrix.ts'
import type { Clock } from '../clock.ts'
import type { KeyRing } from '../rooms/receive/federation-queries.ts'
import { identityNames } from './names.ts'

export interface SignedRequest {
  readonly method: string
  /** Path and query as they came. */
  readonly uri: string
  readonly authorization: string
  readonly content: JsonObject
}

/** Finds out which homeserver has signed a request to the identity service. */
export interface HomeserverRequests {
  /** @throws ProtocolError `M_FORBIDDEN` unless the request is validly signed, for this service, by the server that it names */
  signerOf(request: SignedRequest): Promise<ServerName>
}

export function createHomeserverRequests(deps: {
  readonly config: Pick<Config, 'server_name' | 'public_base_url' | 'listen' | 'identity'>
  readonly clock: Clock
  readonly serverKeys: KeyRing
}): HomeserverRequests {
  const { config, clock, serverKeys } = deps
  const names = identityNames(config)
  const refusal = (): ProtocolError => new ProtocolError('M_FORBIDDEN', 'The homeserver signature is not valid.')

  /**
   * The texts that may have been signed. Homeservers write `destination_is`, the federation specification `destination`; and unless the
   * header says it, we do not know which of our names they used.
   */
  function* signedTexts({ method, uri, content }: SignedRequest, origin: ServerName, destination: string | undefined) {
    for (const name of destination === undefined ? names : [destination]) {
      yield signedText({ method, uri, origin, content, destination_is: name })
      yield signedText({ method, uri, origin, content, destination: name })
    }
  }

  return {
    async signerOf(request) {
      const header = readXMatrix(request.authorization)
      if (header === undefined) throw refusal()
      const { origin, destination, keyId, signature } = header
      if (destination !== undefined && !names.includes(destination)) throw refusal()
      const keys = await serverKeys.keysOf(origin, [keyId])
      const key = keys.find((each) => each.keyId === keyId && each.validUntilTs >= clock.now())
      if (key === undefined) throw refusal()
      for (const text of signedTexts(request, origin, destination)) {
        if (verifySignature(key.publicKey, text, signature)) return origin
      }
      throw refusal()
    },
  }
}

import { randomBytes } from 'node:crypto'
import type { ServerName } from '../../src/core/ids.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { encodeCanonical } from '../../src/core/signing/canonical-json.ts'
import { type Signatures, signJson } from '../../src/core/signing/json-signature.ts'
import { type SigningKey, signingKeyFromSeed } from '../../src/core/signing/key.ts'
import type { Json } from './api.ts'
import type { Authority } from './certificate.ts'
import { startTlsServer, type TlsServer } from './tls-server.ts'

export interface SignedAsk {
  readonly body?: JsonObject
  readonly origin?: string
  readonly destination?: string
  readonly key?: SigningKey
  /** What is sent instead of what was signed. */
  readonly sent?: string
  readonly uri?: string
  readonly authorization?: string | undefined
}

/** Another server, of which there is nothing but a name, keys, and what a test has it say. */
export interface Stranger {
  readonly name: ServerName
  readonly key: SigningKey
  readonly front: TlsServer
  readonly ask: Ask
  close(): Promise<void>
}

/** Sends a signed request to a server. */
export type Ask = (
  to: { name: string; url: string },
  method: string,
  uri: string,
  ask?: SignedAsk,
) => Promise<{ status: number; body: Json }>

/** @param keyOf the key of a server by its name; a random one without */
export async function openStranger(
  authority: Pick<Authority, 'issue'>,
  keyOf: (name: string) => SigningKey = () => signingKeyFromSeed('ed25519:stranger', randomBytes(32)),
): Promise<Stranger> {
  const front = await startTlsServer(authority.issue(['localhost']), (request, response) => {
    const isKeys = request.url.startsWith('/_matrix/key/v2/server')
    response.writeHead(isKeys ? 200 : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify(isKeys ? keys() : { errcode: 'M_UNRECOGNIZED', error: 'unknown' }))
  })
  const name = `localhost:${front.port}` as ServerName
  const key = keyOf(name)
  const keys = () => {
    const verify_keys = { [key.keyId]: { key: key.publicKey } }
    return signJson(
      { server_name: name, valid_until_ts: Date.now() + 3_600_000, verify_keys, old_verify_keys: {} },
      name,
      key,
    )
  }
  return { name, key, front, ask: askingAs(name, key), close: () => front.close() }
}

/** Asks in the name of a server, with its key. */
export function askingAs(name: string, key: SigningKey): Ask {
  return async (
    to,
    method,
    uri,
    { body, origin = name, destination = to.name, key: by = key, sent, uri: signedUri = uri, ...rest } = {},
  ) => {
    const object = { method, uri: signedUri, origin, destination, ...(body && { content: body }) }
    const { signatures } = signJson(object, origin, by) as { signatures: Signatures }
    const sig = signatures[origin]?.[by.keyId]
    const header = `X-Matrix origin="${origin}",destination="${destination}",key="${by.keyId}",sig="${sig}"`
    const authorization = 'authorization' in rest ? rest.authorization : header
    const answer = await fetch(to.url + uri, {
      method,
      headers: { 'content-type': 'application/json', ...(authorization !== undefined && { authorization }) },
      body: sent ?? (body ? encodeCanonical(body) : null),
    })
    return { status: answer.status, body: (await answer.json()) as Json }
  }
}

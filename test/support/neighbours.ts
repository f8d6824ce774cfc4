import { randomBytes } from 'node:crypto'
import type { ServerName } from '../../src/core/ids.ts'
import { type SigningKey, signingKeyFromSeed } from '../../src/core/signing/key.ts'
import { type Account, type Api, openApi, register } from './api.ts'
import { type Authority, createAuthority } from './certificate.ts'
import { type ServerTestOptions, startServer, type TestServer } from './server.ts'
import { json, proxyTo, startTlsServer, type TlsServer } from './tls-server.ts'

/** A Hearth behind a proxy that does TLS, as others see it. */
export interface Neighbour {
  readonly name: ServerName
  readonly front: TlsServer
  readonly server: TestServer
  readonly api: Api
  readonly signingKey: SigningKey
  person(localpart: string): Promise<Account>
}

export interface Neighbourhood {
  readonly authority: Authority
  open(values?: object): Promise<Neighbour>
  close(): Promise<void>
}

/** Homeservers that reach one another over HTTPS on loopback. */
export function openNeighbourhood(options: Pick<ServerTestOptions, 'clock' | 'tracing'> = {}): Neighbourhood {
  const authority = createAuthority()
  const all: Neighbour[] = []
  return {
    authority,
    async open(values = {}) {
      const front = await startTlsServer(authority.issue(['localhost']), json({}, 503))
      const name = `localhost:${front.port}` as ServerName
      const signingKey = signingKeyFromSeed('ed25519:home', randomBytes(32))
      const config = { server_name: name, outbound: { ca_file: authority.file }, ...values }
      const server = await startServer(config, { ...options, signingKey })
      front.handler = proxyTo(server.baseUrl)
      const api = openApi(server.baseUrl)
      const person = (localpart: string) => register(api, localpart)
      const neighbour = { name, front, server, api, signingKey, person }
      all.push(neighbour)
      return neighbour
    },
    async close() {
      for (const { api, server, front } of all) {
        await api.close()
        await server.close()
        await front.close()
      }
      authority.remove()
    },
  }
}

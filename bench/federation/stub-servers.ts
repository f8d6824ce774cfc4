import type { RequestListener } from 'node:http'
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https'
import { createServer, type Server, type Socket } from 'node:net'
import type { ServerName } from '../../src/core/ids.ts'
import { signJson } from '../../src/core/signing/json-signature.ts'
import { type SigningKey, signingKeyFromSeed } from '../../src/core/signing/key.ts'
import type { Authority } from '../../test/support/certificate.ts'

/** A homeserver of which there is nothing but a name, a key and what it answers. */
export interface StubServer {
  readonly name: ServerName
  readonly key: SigningKey
}

export interface StubRequest {
  readonly at: StubServer
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly body: string
}

/** An answer in pieces, so that a large one is put together by nobody; undefined for what the server does not know. */
export type StubHandler = (request: StubRequest) => readonly (string | Buffer)[] | undefined

export interface StubServers {
  readonly all: readonly StubServer[]
  /** From now on nobody listens there. */
  refuse(servers: readonly StubServer[]): Promise<void>
  /** From now on connections there are taken and nothing is said. */
  hang(servers: readonly StubServer[]): void
  close(): Promise<void>
}

/** All of them on one port, each at a loopback address of its own. */
const PORT = 18_448
/** So many share a certificate: one for all would be far larger than what real servers show. */
const ADDRESSES_PER_CERTIFICATE = 20
const addressOf = (n: number): string => `127.20.${Math.floor(n / 200)}.${1 + (n % 200)}`

export async function openStubServers(authority: Authority, count: number, handle: StubHandler): Promise<StubServers> {
  const addresses = Array.from({ length: count }, (_, n) => addressOf(n))
  const byAddress = new Map<string, StubServer>(
    addresses.map((address, n) => {
      const seed = Buffer.alloc(32, `stub ${n} `)
      return [address, { name: `${address}:${PORT}` as ServerName, key: signingKeyFromSeed('ed25519:stub', seed) }]
    }),
  )
  const hanging = new Set<string>()
  const answer: RequestListener = (message, response) => {
    const chunks: Buffer[] = []
    message.on('data', (chunk: Buffer) => chunks.push(chunk))
    message.on('end', () => {
      const at = byAddress.get(message.headers.host?.split(':')[0] ?? '')!
      const url = new URL(message.url ?? '', 'https://stub')
      const { pathname: path, searchParams: query } = url
      const isKeys = path.startsWith('/_matrix/key/v2/server')
      const body = Buffer.concat(chunks).toString()
      const said = isKeys ? [keysOf(at)] : handle({ at, method: message.method ?? '', path, query, body })
      response.writeHead(said ? 200 : 404, { 'content-type': 'application/json' })
      for (const piece of said ?? ['{"errcode":"M_UNRECOGNIZED","error":"unknown"}']) response.write(piece)
      response.end()
    })
  }
  const fronts = frontsOf(authority, addresses, answer)
  const sockets = new Map<string, Set<Socket>>()
  const listeners = new Map<string, Server>()
  for (const address of addresses) {
    const open = new Set<Socket>()
    const server = createServer((socket) => {
      open.add(socket)
      socket.on('error', () => {}).on('close', () => open.delete(socket))
      if (!hanging.has(address)) fronts.get(address)!.emit('connection', socket)
    })
    await new Promise<void>((resolve) => server.listen(PORT, address, resolve))
    sockets.set(address, open)
    listeners.set(address, server)
  }
  const disconnect = (address: string) => {
    for (const socket of sockets.get(address)!) socket.destroy()
  }
  const addressOfServer = ({ name }: StubServer): string => name.split(':')[0]!

  async function refuse(servers: readonly StubServer[]): Promise<void> {
    for (const address of servers.map(addressOfServer)) {
      disconnect(address)
      await new Promise((resolve) => listeners.get(address)!.close(resolve))
    }
  }

  return {
    all: [...byAddress.values()],
    refuse,
    hang(servers) {
      for (const address of servers.map(addressOfServer)) {
        hanging.add(address)
        disconnect(address)
      }
    },
    async close() {
      await refuse([...byAddress.values()])
    },
  }
}

/** What speaks TLS at each address. */
function frontsOf(authority: Authority, addresses: readonly string[], answer: RequestListener) {
  const fronts = new Map<string, HttpsServer>()
  for (let at = 0; at < addresses.length; at += ADDRESSES_PER_CERTIFICATE) {
    const some = addresses.slice(at, at + ADDRESSES_PER_CERTIFICATE)
    const https = createHttpsServer(authority.issue(some), answer)
    https.keepAliveTimeout = 600_000
    for (const address of some) fronts.set(address, https)
  }
  return fronts
}

function keysOf({ name, key }: StubServer): string {
  const said = {
    server_name: name,
    valid_until_ts: Date.now() + 3_600_000,
    verify_keys: { [key.keyId]: { key: key.publicKey } },
    old_verify_keys: {},
  }
  return JSON.stringify(signJson(said, name, key))
}

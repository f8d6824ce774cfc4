import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Connections } from './connections.ts'
import { judgeFirst } from './expect-continue.ts'
import { answerBrokenRequest, CONNECTIONS, type Routed } from './server.ts'

/** A certificate with its chain, and its key: PEM. */
export interface TlsCertificate {
  readonly cert: string
  readonly key: string
}

/** The HTTPS listeners, which serve the same as HTTP. */
export interface HttpsListeners {
  readonly servers: readonly Server[]
  readonly ports: readonly number[]
  /** Uses this certificate for new connections; existing ones continue. */
  use(certificate: TlsCertificate): void
}

/** A client must finish its TLS handshake within this time. */
const HANDSHAKE_TIMEOUT_MS = 10_000
const OLDEST_TLS = 'TLSv1.2'

/** @throws Error that names the option */
export async function listenHttps(
  app: Routed,
  { host, ports }: { readonly host: string; readonly ports: readonly number[] },
  { cert, key }: TlsCertificate,
  connections: Connections,
): Promise<HttpsListeners> {
  const tls = { cert, key, minVersion: OLDEST_TLS, handshakeTimeout: HANDSHAKE_TIMEOUT_MS } as const
  const servers = ports.map(() => createServer({ ...CONNECTIONS, ...tls }, app.routing))
  for (const server of servers) {
    connections.bound(server, false)
    judgeFirst(server, app.routing)
    server.on('clientError', answerBrokenRequest)
    // Somebody who wants another protocol, or another name.
    server.on('tlsClientError', () => {})
  }
  try {
    await Promise.all(servers.map((server, index) => listen(server, host, ports[index]!)))
  } catch (error) {
    for (const server of servers) server.close()
    throw error
  }
  return {
    servers,
    ports: servers.map((server) => (server.address() as AddressInfo).port),
    use: (next) => {
      for (const server of servers) server.setSecureContext({ cert: next.cert, key: next.key, minVersion: OLDEST_TLS })
    },
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'something listens there already; see https.host and https.ports',
  EACCES:
    "ports below 1024 need a right: AmbientCapabilities=CAP_NET_BIND_SERVICE in the systemd unit, or setcap 'cap_net_bind_service=+ep' for node",
  EAFNOSUPPORT: 'this machine has no such addresses; https.host 0.0.0.0 means all of IPv4',
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', ({ code = '' }: NodeJS.ErrnoException) => {
      reject(
        new Error(`cannot listen on ${host}:${port}: ${REASONS[code] ?? `${code}; see https.host and https.ports`}`),
      )
    })
    server.listen(port, host, resolve)
  })
}

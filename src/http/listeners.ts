import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Config } from '../config/schema.ts'
import type { Connections } from './connections.ts'
import { judgeFirst } from './expect-continue.ts'
import { type HttpsListeners, listenHttps, type TlsCertificate } from './https.ts'
import { answerBrokenRequest, CONNECTIONS, type Routed } from './server.ts'
import { listenUnix } from './unix-socket.ts'

/** Everything that listens for clients. */
export interface ClientListeners {
  readonly servers: readonly Server[]
  /** Of HTTP. */
  readonly port: number
  readonly httpsPorts: readonly number[]
  /** Uses this certificate for new connections, if HTTPS is served. */
  useCertificate(certificate: TlsCertificate): void
}

export interface ListenParts {
  readonly config: Pick<Config, 'listen' | 'https'>
  readonly certificate?: { current(): TlsCertificate } | undefined
  readonly connections: Connections
  /** The framework, if its own server is to listen. */
  readonly app?: FastifyInstance
}

/** Listens where it is configured. @throws Error that names the option; then nothing listens */
export async function listenForClients(routed: Routed, parts: ListenParts): Promise<ClientListeners> {
  const { app, config, certificate, connections } = parts
  const main = app?.server ?? serverOf(routed)
  connections.bound(main, true)
  const { socket } = config.listen
  let unix: Server | undefined
  let https: HttpsListeners | undefined
  try {
    await listen(app ?? main, config.listen)
    if (socket !== undefined)
      unix = await listenUnix(routed, { path: socket, mode: config.listen.socket_mode }, connections)
    https = certificate && (await listenHttps(routed, config.https, certificate.current(), connections))
  } catch (error) {
    unix?.close()
    if (app === undefined) main.close()
    throw error
  }
  return {
    servers: [main, ...(unix ? [unix] : []), ...(https?.servers ?? [])],
    port: (main.address() as AddressInfo).port,
    httpsPorts: https?.ports ?? [],
    useCertificate: (next) => https?.use(next),
  }
}

function serverOf({ routing }: Routed): Server {
  const server = createServer(CONNECTIONS, routing)
  judgeFirst(server, routing)
  server.on('clientError', answerBrokenRequest)
  return server
}

async function listen(server: FastifyInstance | Server, { host, port }: Config['listen']): Promise<void> {
  try {
    if ('routing' in server) await server.listen({ host, port })
    else
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, resolve)
      })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'EADDRINUSE' ? 'something listens there already' : (code ?? String(error))
    throw new Error(`cannot listen on ${host}:${port}: ${why}; see listen.host and listen.port`)
  }
}

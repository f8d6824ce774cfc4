import { randomBytes } from 'node:crypto'
import type { Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { Context, ContextOptions } from './base.ts'
import type { CertificateFiles } from './cli/serve/certificate.ts'
import { answerHealth, type Health } from './cli/serve/health.ts'
import type { Config } from './config/schema.ts'
import { meetNodes } from './domain/cluster/join.ts'
import { ownFacts } from './domain/cluster/own-facts.ts'
import type { Services } from './domain/services.ts'
import { createConnections } from './http/connections.ts'
import { type HttpsListeners, listenHttps } from './http/https.ts'
import { sendJson } from './http/reply.ts'
import { listenUnix } from './http/unix-socket.ts'
import { openDatabase } from './store/db/db.ts'
import { prepareDatabase } from './store/db/prepare.ts'

export interface ServerOptions extends ContextOptions {
  readonly migrations: string
  readonly health: Health
  /** The certificate, if Hearth serves HTTPS itself. */
  readonly certificate?: CertificateFiles | undefined
  /** How long, during a stop, answers tell clients to close their connections, so that no request is cut off on its way. */
  readonly farewellMs?: number
}

export interface RunningServer {
  readonly port: number
  readonly httpsPorts: readonly number[]
  readonly services: Services
  /** Resolves if another node took the place of this one: the process must end at once, and write nothing more. */
  readonly lost: Promise<void>
  /** Stops accepting, lets requests end, then closes the database connections. */
  close(): Promise<void>
}

const FAREWELL_MS = 300
/** Running requests get this long to end; with the rest of a stop it takes less than 10 s. */
const DRAIN_MS = 7_000

/** Migrates, wires everything, and listens. The database must be running. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { config, connection, health, certificate, log } = options
  const isHomeserver = config.roles.includes('client')
  await fitAmongNodes(options)
  health.enter('migrating')
  const { applied, newer } = await prepareDatabase(connection, options.migrations, config.server_name)
  if (newer.length > 0)
    log.warn({ migrations: newer }, 'a newer Hearth migrated this database; this one runs on it too')
  if (applied.length > 0) log.info({ migrations: applied.length }, 'database is up to date')
  // What the other role is made of is not even loaded.
  const { createContext } = await (isHomeserver ? import('./context.ts') : import('./identity-alone.ts'))
  const { buildApp } = await (isHomeserver ? import('./app.ts') : import('./identity-alone.ts'))
  const context = await createContext(options)
  health.watch(() => context.ready())
  const app = buildApp(context)
  mountHealth(app, health)
  const connections = createConnections(
    {
      inAll: config.limits.max_connections,
      perAddress: config.limits.max_connections_per_address,
      trustedProxies: config.trusted_proxies,
    },
    { metrics: context.metrics.arrivals, log },
  )
  connections.bound(app.server, true)
  let https: HttpsListeners | undefined
  let unix: HttpServer | undefined
  const { socket } = config.listen
  try {
    await listen(app, config.listen)
    if (socket !== undefined)
      unix = await listenUnix(app, { path: socket, mode: config.listen.socket_mode }, connections)
    https = certificate && (await listenHttps(app, config.https, certificate.current(), connections))
  } catch (error) {
    unix?.close()
    await app.close()
    await context.close()
    throw error
  }
  if (https) certificate?.onChange(https.use)
  const servers: readonly HttpServer[] = [app.server, ...(unix ? [unix] : []), ...(https?.servers ?? [])]
  context.listening?.()
  health.enter('running')

  async function close(): Promise<void> {
    health.enter('draining')
    await drain(servers, app, context, options.farewellMs ?? FAREWELL_MS)
    await context.close()
  }
  const { port } = app.server.address() as AddressInfo
  return { port, httpsPorts: https?.ports ?? [], services: context.services, lost: context.lost, close }
}

/** A process that does not belong to the cluster must not migrate its database. */
async function fitAmongNodes(options: ServerOptions): Promise<void> {
  const { config, connection, signingKey, identityKeys, version } = options
  const own = ownFacts({ config, signingKey, identityKeys, version, random: { bytes: randomBytes } })
  if (own.cluster === undefined) return
  const db = openDatabase({ connection, poolSize: 1 })
  try {
    await meetNodes(db, own)
  } finally {
    await db.close()
  }
}

async function drain(
  servers: readonly HttpServer[],
  app: FastifyInstance,
  context: Context,
  farewellMs: number,
): Promise<void> {
  for (const server of servers) {
    server.on('request', (_request, response) => {
      if (!response.headersSent) response.setHeader('connection', 'close')
    })
  }
  await delay(farewellMs)
  // A connection whose last request was a long poll becomes idle only now and then; Node closes those of the moment only.
  const sweep = setInterval(() => servers.map((server) => server.closeIdleConnections()), 50)
  const impatience = setTimeout(() => servers.map((server) => server.closeAllConnections()), DRAIN_MS)
  const others = servers.filter((server) => server !== app.server)
  const closed = [app.close(), ...others.map((server) => new Promise((resolve) => server.close(resolve)))]
  context.drain()
  await Promise.all(closed)
  clearInterval(sweep)
  clearTimeout(impatience)
}

function mountHealth(app: FastifyInstance, health: Health): void {
  for (const path of ['/health/live', '/health/ready']) {
    app.get(path, async (request, reply) => {
      request.operation = path
      const answer = await answerHealth(health, path)
      reply.status(answer?.status ?? 404).header('cache-control', 'no-store')
      return sendJson(reply, JSON.stringify(answer?.body))
    })
  }
}

async function listen(app: FastifyInstance, { host, port }: Config['listen']): Promise<void> {
  try {
    await app.listen({ host, port })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'EADDRINUSE' ? 'something listens there already' : (code ?? String(error))
    throw new Error(`cannot listen on ${host}:${port}: ${why}; see listen.host and listen.port`)
  }
}

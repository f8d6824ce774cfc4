import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { App } from './app.ts'
import type { AmongNodes, Context, ContextOptions } from './base.ts'
import type { CertificateFiles } from './cli/serve/certificate.ts'
import { answerHealth, type Health } from './cli/serve/health.ts'
import { sharedValues } from './config/shared-options.ts'
import { isOnlyLocal } from './domain/accounts/registration-policy.ts'
import { meetNodes, StandByEnded } from './domain/cluster/join.ts'
import { ownFacts } from './domain/cluster/own-facts.ts'
import type { Services } from './domain/services.ts'
import { type Connections, createConnections } from './http/connections.ts'
import { type ClientListeners, listenForClients } from './http/listeners.ts'
import { type Front, openFront } from './http/nodes/front.ts'
import { sendJson } from './http/reply.ts'
import { handOver, stopAlone, stopStandingBy } from './stopping.ts'
import { openDatabase } from './store/db/db.ts'
import { prepareDatabase } from './store/db/prepare.ts'

export interface ServerOptions extends ContextOptions {
  readonly migrations: string
  readonly health: Health
  /** The certificate, if Hearth serves HTTPS itself. */
  readonly certificate?: CertificateFiles | undefined
  /** In a cluster: called when this process begins to stand by, and what ends that. Without it, it waits for one lease at most. */
  readonly standBy?: { began(): void; readonly signal: AbortSignal } | undefined
  /** Asked at a stop: no other node is left that could take the place, so this one serves until all is answered. */
  readonly isLast?: (() => boolean) | undefined
  /** How long, during a stop, answers tell clients to close their connections, so that no request is cut off on its way. */
  readonly farewellMs?: number | undefined
}

export interface RunningServer {
  readonly port: number
  readonly httpsPorts: readonly number[]
  readonly services: Services
  /** Resolves if another node took the place of this one: the process must end at once, and write nothing more. */
  readonly lost: Promise<void>
  /** Calls back when a client comes. What asks for the server's health is none. It may call again for another port. */
  onFirstRequest(called: () => void): void
  /** Stops accepting, lets requests end, then closes the database connections. */
  close(): Promise<void>
}

/** Migrates, wires everything, and listens. The database must be running. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { config, connection, health, log } = options
  await fitAmongNodes(options)
  health.enter('migrating')
  const { applied, newer } = await prepareDatabase(connection, options.migrations, config.server_name)
  if (newer.length > 0)
    log.warn({ migrations: newer }, 'a newer Hearth migrated this database; this one runs on it too')
  if (applied.length > 0) log.info({ migrations: applied.length }, 'database is up to date')
  const bounds = {
    inAll: config.limits.max_connections,
    perAddress: config.limits.max_connections_per_address,
    trustedProxies: config.trusted_proxies,
  }
  const connections = createConnections(bounds, { metrics: options.metrics.arrivals, log })
  const front = await openFrontOf(options, connections)
  return front === undefined ? serveAlone(options, connections) : serveAsNode(options, connections, front)
}

async function serveAlone(options: ServerOptions, connections: Connections): Promise<RunningServer> {
  const { config, certificate } = options
  const { context, app } = await buildServer(options)
  try {
    const listeners = await listenForClients(app, { app, config, certificate, connections })
    return running(options, { context, app, listeners, connections, front: undefined })
  } catch (error) {
    await app.close()
    await context.close()
    throw error
  }
}

/** Passes requests on for as long as another node serves. */
async function serveAsNode(options: ServerOptions, connections: Connections, front: Front): Promise<RunningServer> {
  const { config, certificate, health, standBy } = options
  let listeners: ClientListeners | undefined
  const listen = () => listenForClients(front, { config, certificate, connections })
  const servers = () => [front.server, ...(listeners?.servers ?? [])]

  async function passOn(address: string | undefined, isAlike: boolean): Promise<void> {
    front.passTo(address, isAlike)
    if (listeners !== undefined) return
    if (config.roles.includes('client')) await readHere(options, front)
    listeners = await listen()
    certificate?.onChange(listeners.useCertificate)
    health.watch(front.isOpen)
    health.enter('standing by')
    standBy?.began()
  }

  try {
    const waiting = standBy && { signal: standBy.signal, serving: passOn }
    const { context, app, batches } = await buildServer(options, { address: front.address, standBy: waiting })
    try {
      await app.ready()
      front.serve(app.routing, context.isHeld, context.syncDesk, batches)
      listeners ??= await listen()
      return running(options, { context, app, listeners, connections, front })
    } catch (error) {
      await app.close()
      await context.close()
      throw error
    }
  } catch (error) {
    if (error instanceof StandByEnded) {
      health.enter('draining')
      const { farewellMs, connection } = options
      await stopStandingBy({ front, servers: servers(), connections, connection, farewellMs })
    }
    for (const server of servers()) {
      server.close()
      server.closeAllConnections()
    }
    front.close()
    throw error
  }
}

/** Answers what reads, for as long as this node stands by. Whatever it does not answer well, the node that serves answers. */
async function readHere(options: ServerOptions, front: Front): Promise<void> {
  const { openStandingBy } = await import('./standing-by.ts')
  const reading = await openStandingBy(options, front)
  void front
    .readHere(reading)
    .then(() =>
      reading.close().catch((err) => options.log.warn({ err }, 'what this node read with could not be closed')),
    )
}

/** Everything that a server is made of, before it listens. */
async function buildServer(
  options: ServerOptions,
  amongNodes?: AmongNodes,
): Promise<App & { readonly context: Context }> {
  const { config, health } = options
  const isHomeserver = config.roles.includes('client')
  // What the other role is made of is not even loaded.
  const { createContext } = await (isHomeserver ? import('./context.ts') : import('./identity-alone.ts'))
  const { buildApp } = await (isHomeserver ? import('./app.ts') : import('./identity-alone.ts'))
  const context = await createContext(options, amongNodes)
  health.watch(() => context.ready())
  const { app, batches } = buildApp(context)
  mountHealth(app, health)
  return { context, app, batches }
}

interface Built {
  readonly context: Context
  readonly app: FastifyInstance
  readonly listeners: ClientListeners
  readonly connections: Connections
  /** What stands before everything else in a cluster. */
  readonly front: Front | undefined
}

function running(options: ServerOptions, built: Built): RunningServer {
  const { context, app, listeners, connections, front } = built
  const { health, certificate } = options
  certificate?.onChange(listeners.useCertificate)
  context.listening?.()
  health.enter('running')
  return {
    port: listeners.port,
    httpsPorts: listeners.httpsPorts,
    services: context.services,
    lost: context.lost,
    onFirstRequest(called) {
      for (const server of listeners.servers) {
        const hear = ({ url = '' }: IncomingMessage): void => {
          if (url.startsWith('/health/')) return
          server.off('request', hear)
          called()
        }
        server.on('request', hear)
      }
    },
    async close() {
      health.enter('draining')
      const { farewellMs, connection } = options
      const servers = [...listeners.servers, ...(front === undefined ? [] : [front.server])]
      if (front === undefined || options.isLast?.()) await stopAlone({ servers, connections, app, context, farewellMs })
      else await handOver({ servers, connections, app, context, farewellMs, front, connection })
    },
  }
}

/** A process that does not belong to the cluster must not migrate its database. */
async function fitAmongNodes(options: ServerOptions): Promise<void> {
  const { config, connection, signingKey, identityKeys, version } = options
  if (config.cluster.secret === undefined) return
  const own = await ownFacts({
    config,
    sharedValues,
    signingKey,
    identityKeys,
    version,
    random: { bytes: randomBytes },
  })
  const db = openDatabase({ connection, poolSize: 1 })
  try {
    await meetNodes(db, own)
  } finally {
    await db.close()
  }
}

/** Undefined for a process alone. */
async function openFrontOf(options: ServerOptions, connections: Connections): Promise<Front | undefined> {
  const { clock = Date, config, health, log } = options
  const { secret, host, port } = config.cluster
  if (secret === undefined) return undefined
  const answersItself = (request: IncomingMessage, response: ServerResponse): boolean => {
    const path = request.url?.split('?')[0] ?? ''
    if (!path.startsWith('/health/')) return false
    void answerHealth(health, path).then((answer) => {
      response.writeHead(answer?.status ?? 404, { 'content-type': 'application/json', 'cache-control': 'no-store' })
      response.end(JSON.stringify(answer?.body ?? {}))
    })
    return true
  }
  return openFront({
    secret,
    host,
    port,
    connections,
    isOnlyLocal: isOnlyLocal(config),
    now: () => clock.now(),
    log,
    answersItself,
  })
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

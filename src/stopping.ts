import type { Server as HttpServer } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { ClientConfig } from 'pg'
import type { Context } from './base.ts'
import { isServing } from './domain/cluster/node-fit.ts'
import { HAND_OVER_PATIENCE_MS, NODE_FAREWELL_MS, NODE_LOOK_MS, NODE_SUCCESSION_MS } from './domain/limits/cluster.ts'
import type { Front } from './http/nodes/front.ts'
import { findNode } from './store/cluster/nodes.ts'
import { openDatabase } from './store/db/db.ts'
import { WRITER } from './store/db/writer-lock.ts'

export interface StoppingParts {
  /** Everything that listens. */
  readonly servers: readonly HttpServer[]
  readonly app: FastifyInstance
  readonly context: Context
  /** How long answers tell clients to close their connections, so that no request is cut off on its way. */
  readonly farewellMs?: number | undefined
}

const FAREWELL_MS = 300
/** Running requests get this long to end; with the rest of a stop it takes less than 10 s. */
const DRAIN_MS = 7_000

/** Stops a process alone: it stops listening, waits until all requests are answered, and closes everything. */
export async function stopAlone({ servers, app, context, farewellMs = FAREWELL_MS }: StoppingParts): Promise<void> {
  sayFarewell(servers)
  await delay(farewellMs)
  await endConnections(servers, {
    begun() {
      const closed = app.close()
      context.drain()
      return closed
    },
    ownServer: app.server,
  })
  await context.close()
}

/**
 * Stops the node that serves. It gives its place back first, and then passes requests on for as long as balancers may send it some, so that
 * clients only wait until the next node serves.
 */
export async function handOver(parts: StoppingParts & PassingParts): Promise<void> {
  const { servers, app, context, front } = parts
  const begun = performance.now()
  sayFarewell(servers)
  const answered = front.retire()
  context.drain()
  await Promise.race([answered, delay(HAND_OVER_PATIENCE_MS, undefined, { ref: false })])
  await app.close()
  await context.close()
  const { farewellMs = NODE_FAREWELL_MS } = parts
  // Without a farewell nobody sends anything any more, and nothing has to wait for the next node.
  const patienceMs = farewellMs > 0 ? NODE_SUCCESSION_MS : 0
  await endPassing(parts, begun + farewellMs, performance.now() + patienceMs)
}

export interface PassingParts {
  readonly front: Front
  /** Everything that listens. */
  readonly servers: readonly HttpServer[]
  /** Of the database. */
  readonly connection: ClientConfig
  readonly farewellMs?: number | undefined
}

/** Stops a node that stood by. */
export async function stopStandingBy(parts: PassingParts): Promise<void> {
  sayFarewell(parts.servers)
  const until = performance.now() + (parts.farewellMs ?? NODE_FAREWELL_MS)
  await endPassing(parts, until, until, true)
}

/**
 * Passes requests on to whichever node serves, and then ends. Times are of `performance.now()`.
 *
 * @param lonelyUntil when it ends if it has found no node that serves
 * @param stoodBy whether the node that serves has done so before
 */
async function endPassing(
  { front, servers, connection }: PassingParts,
  until: number,
  lonelyUntil: number,
  stoodBy = false,
): Promise<void> {
  const db = openDatabase({ connection, poolSize: 1 })
  let end = lonelyUntil
  let address: string | undefined
  let isKnown = stoodBy
  try {
    while (performance.now() < end) {
      const found = await findNode(db, WRITER).catch(() => undefined)
      if (isServing(found) && found.address !== '' && found.address !== address) {
        address = found.address
        front.passTo(address)
        // It may still be about to begin.
        if (!isKnown) end = Math.max(until, performance.now() + NODE_SUCCESSION_MS)
      }
      isKnown = false
      await delay(NODE_LOOK_MS)
    }
  } finally {
    await db.close()
  }
  front.finish()
  await endConnections(servers)
}

function sayFarewell(servers: readonly HttpServer[]): void {
  for (const server of servers) {
    server.prependListener('request', (_request, response) => {
      if (!response.headersSent) response.setHeader('connection', 'close')
    })
  }
}

/**
 * Stops listening, and waits until all requests are answered, or for as long as they get.
 *
 * @param framework closes its own server itself, and hears that no new connection comes
 */
async function endConnections(
  servers: readonly HttpServer[],
  framework?: { readonly ownServer: HttpServer; begun(): PromiseLike<unknown> },
): Promise<void> {
  // A connection whose last request was a long poll becomes idle only now and then; Node closes those of the moment only.
  const sweep = setInterval(() => servers.map((server) => server.closeIdleConnections()), 50)
  const impatience = setTimeout(() => servers.map((server) => server.closeAllConnections()), DRAIN_MS)
  const others = servers.filter((server) => server !== framework?.ownServer)
  const closed = others.map((server) => new Promise((resolve) => server.close(resolve)))
  await Promise.all([framework?.begun(), ...closed])
  clearInterval(sweep)
  clearTimeout(impatience)
}

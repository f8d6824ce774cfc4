import type { Server as HttpServer } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { ClientConfig } from 'pg'
import type { Context } from './base.ts'
import { isServing } from './domain/cluster/node-fit.ts'
import {
  HAND_OVER_MOST_MS,
  HAND_OVER_PATIENCE_MS,
  LONELY_SUCCESSION_MS,
  NODE_FAREWELL_MS,
  NODE_LOOK_MS,
  NODE_SUCCESSION_MS,
} from './domain/limits/cluster.ts'
import type { Connections } from './http/connections.ts'
import type { Front } from './http/nodes/front.ts'
import { countSuccessors, findNode } from './store/cluster/nodes.ts'
import { openDatabase, type Reader } from './store/db/db.ts'
import { WRITER } from './store/db/writer-lock.ts'

export interface StoppingParts {
  /** Everything that listens. */
  readonly servers: readonly HttpServer[]
  readonly connections: Pick<Connections, 'endSilent'>
  readonly app: FastifyInstance
  readonly context: Context
  /** How long answers tell clients to close their connections, so that no request is cut off on its way. */
  readonly farewellMs?: number | undefined
}

const FAREWELL_MS = 300
/** Running requests get this long to end; with the rest of a stop it takes less than 10 s. */
const DRAIN_MS = 7_000
const ANSWERS_LOOK_MS = 50

/** Stops a process alone: it stops listening, waits until all requests are answered, and closes everything. */
export async function stopAlone(parts: StoppingParts): Promise<void> {
  const { servers, app, context, farewellMs = FAREWELL_MS } = parts
  sayFarewell(servers)
  await delay(farewellMs)
  await endConnections(parts, {
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
  await untilAnswered(front, answered)
  await app.close()
  await context.close()
  await endPassing(parts, begun)
}

/** Waits until all is answered, or for as long as answers follow each other. */
async function untilAnswered(front: Pick<Front, 'begun'>, answered: Promise<void>): Promise<void> {
  const begun = performance.now()
  const isOver = answered.then(() => true)
  for (let left = front.begun(), lastAt = begun; ; ) {
    if (await Promise.race([isOver, delay(ANSWERS_LOOK_MS, false, { ref: false })])) return
    const now = performance.now()
    if (front.begun() < left) {
      left = front.begun()
      lastAt = now
    }
    if (now - lastAt > HAND_OVER_PATIENCE_MS || now - begun > HAND_OVER_MOST_MS) return
  }
}

export interface PassingParts {
  readonly front: Front
  /** Everything that listens. */
  readonly servers: readonly HttpServer[]
  readonly connections: Pick<Connections, 'endSilent'>
  /** Of the database. */
  readonly connection: ClientConfig
  readonly farewellMs?: number | undefined
}

/** Stops a node that stood by. */
export async function stopStandingBy(parts: PassingParts): Promise<void> {
  sayFarewell(parts.servers)
  await endPassing(parts, performance.now())
}

/**
 * Passes requests on to whichever node serves, and then ends: not before its farewell is over, and not while requests wait for a node that
 * is just beginning to serve.
 *
 * @param begun when it began to stop, by `performance.now()`
 */
async function endPassing(parts: PassingParts, begun: number): Promise<void> {
  const { front, connection, farewellMs = NODE_FAREWELL_MS } = parts
  const db = openDatabase({ connection, poolSize: 1 })
  const began = performance.now()
  const until = begun + farewellMs
  let lastAt = Math.max(until, began + LONELY_SUCCESSION_MS)
  let address: string | undefined
  try {
    for (;;) {
      const found = await findSuccessor(db).catch(() => undefined)
      if (found?.address !== undefined && found.address !== address) {
        address = found.address
        front.passTo(address)
      }
      if (found?.isThere) lastAt = Math.max(until, began + NODE_SUCCESSION_MS)
      const now = performance.now()
      if (now >= lastAt || (now >= until && !(await front.isAwaiting()))) break
      await delay(NODE_LOOK_MS)
    }
  } finally {
    await db.close()
  }
  front.finish()
  await endConnections(parts)
}

/** Where the node that serves listens, and whether there is one at all, or one that stands by. */
async function findSuccessor(db: Reader): Promise<{ readonly address: string | undefined; readonly isThere: boolean }> {
  const found = await findNode(db, WRITER)
  const address = (isServing(found) && found.address) || undefined
  return { address, isThere: address !== undefined || (await countSuccessors(db, WRITER)) > 0 }
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
  { servers, connections }: Pick<StoppingParts, 'servers' | 'connections'>,
  framework?: { readonly ownServer: HttpServer; begun(): PromiseLike<unknown> },
): Promise<void> {
  // A connection whose last request was a long poll becomes idle only now and then; Node closes those of the moment only.
  const sweep = setInterval(() => {
    for (const server of servers) server.closeIdleConnections()
    connections.endSilent()
  }, 50)
  const impatience = setTimeout(() => servers.map((server) => server.closeAllConnections()), DRAIN_MS)
  const others = servers.filter((server) => server !== framework?.ownServer)
  const closed = others.map((server) => new Promise((resolve) => server.close(resolve)))
  await Promise.all([framework?.begun(), ...closed])
  clearInterval(sweep)
  clearTimeout(impatience)
}

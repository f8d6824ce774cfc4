import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import {
  MAX_UNPROVED_CONNECTIONS,
  NODE_LEASE_MARGIN_MS,
  NODE_LEASE_MS,
  PASSED_ON_HEADER_BYTES,
} from '../../domain/limits/cluster.ts'
import type { SyncDesk } from '../../domain/standby/sync-desk.ts'
import { NODE_PEER } from '../client-address.ts'
import type { Connections } from '../connections.ts'
import { judgeFirst } from '../expect-continue.ts'
import { answerBrokenRequest, CONNECTIONS } from '../server.ts'
import type { BatchDesk } from './batch-desk.ts'
import { createBatchesIn } from './batches-in.ts'
import { createForwarder } from './forwarder.ts'
import { NEWS_PATH, NEWS_PROTOCOL, VERSION_PROTOCOL, wordIn } from './news-frames.ts'
import { createNewsGiver, type NewsGiver, refuseUpgrade } from './news-giver.ts'
import { answer, isOfNode, NODE_PROOF, nodeListener } from './node-listener.ts'
import { createReadingHere, type PassingOn, type Reading } from './reading-here.ts'
import { createStrangers } from './strangers.ts'

/** How long a look at the node that serves may delay a word on health. */
const OPEN_LOOK_MS = 1_000

/** What has the requests of clients and of other nodes: it passes them on, until this node serves. */
export interface Front {
  /** Where this node listens for others: `host:port`. */
  readonly address: string
  /** The listener for other nodes. */
  readonly server: Server
  /** Handles a request of a client. */
  readonly routing: RequestListener
  /**
   * From now on that node serves, or none.
   *
   * @param isAlike whether it would answer as this one does; else this one answers nothing in its stead. By default it would
   */
  passTo(address: string | undefined, isAlike?: boolean): void
  /**
   * Until this node serves, it answers such requests itself while another one serves.
   *
   * @returns when this node serves, or stops, and what was begun is answered, or has had its time
   */
  readHere(reading: Reading): Promise<void>
  /** Passes a request on that this node began to answer itself. Nothing of an answer may be sent yet. */
  passOn(request: IncomingMessage, response: ServerResponse, known?: PassingOn): void
  /**
   * From now on this node serves, for as long as `isHeld` says so.
   *
   * @param desk has news for the syncs that other nodes hold
   * @param batches answers what they pass on in batches
   */
  serve(listener: RequestListener, isHeld: () => boolean, desk?: SyncDesk, batches?: BatchDesk): void
  /**
   * From now on this node does not serve: new requests wait until `passTo` says which one does.
   *
   * @returns when all that it has begun to answer is answered
   */
  retire(): Promise<void>
  /** How many requests it has begun to answer, and has not answered yet. */
  begun(): number
  /** Whether some requests wait for the node that serves, and that one is not reached or is not ready. */
  isAwaiting(): Promise<boolean>
  /** This process stops: nothing that it passes on may wait any more. */
  finish(): void
  /**
   * Whether requests are answered here, by whichever node. While the place moves from one node to another they wait, so that long, nobody
   * needs to know.
   */
  isOpen(): Promise<boolean>
  close(): void
}

export interface FrontParts {
  readonly secret: string
  /** Where to listen for other nodes. */
  readonly host: string
  readonly port: number
  readonly connections: Connections
  /** Whether only this machine reaches it, so that clients which come without a proxy are on it. By default others may. */
  readonly isOnlyLocal?: boolean | undefined
  readonly now: () => number
  readonly log: Logger
  /** The length of a second, for bodies on their way; shorter in tests. */
  readonly secondMs?: number | undefined
  /** Handles the requests that this node answers itself, whoever serves; gives false for all others. */
  answersItself(request: IncomingMessage, response: ServerResponse): boolean
}

/** @throws Error that names the option if it cannot listen for other nodes */
export async function openFront(parts: FrontParts): Promise<Front> {
  const { secret, host, port, connections, now, log, answersItself } = parts
  let own: { readonly listener: RequestListener; isHeld(): boolean } | undefined
  let news: NewsGiver | undefined
  let elsewhere: string | undefined
  let isElsewhereAlike = false
  let begun = 0
  let allAnswered: (() => void) | undefined
  let unreachedSince: number | undefined
  let looking: Promise<void> | undefined
  // What this node has in memory is true only while it has its place.
  const serving = () => (own?.isHeld() ? own.listener : undefined)
  const answered = (): void => {
    if (--begun === 0) allAnswered?.()
  }
  const begin = (): (() => void) => {
    begun++
    return answered
  }
  const counted =
    (listener: RequestListener): RequestListener =>
    (request, response) => {
      response.on('close', begin())
      listener(request, response)
    }
  const strangers = createStrangers(MAX_UNPROVED_CONNECTIONS)
  const proved = ({ socket }: IncomingMessage): void => strangers.prove(socket)
  const maxHeaderSize = CONNECTIONS.maxHeaderSize + PASSED_ON_HEADER_BYTES
  const listener = nodeListener({ secret, now, serving, proved })
  const server = createServer({ ...CONNECTIONS, maxHeaderSize }, listener)
  judgeFirst(server, listener)
  server.prependListener('connection', markNode)
  server.on('connection', strangers.enter)
  connections.bound(server, true)
  server.on('clientError', answerBrokenRequest)
  await listen(server, host, port)
  const { port: taken } = server.address() as AddressInfo
  const address = `${host.includes(':') ? `[${host}]` : host}:${taken}`
  // A request that waits while this node takes the place goes to this node.
  const target = () => (own === undefined ? elsewhere : address)
  const { secondMs, isOnlyLocal } = parts
  const forwarder = createForwarder({ secret, now, target, secondMs, isOnlyLocal })
  const here = createReadingHere(forwarder)
  const giver = () => (own?.isHeld() ? news : undefined)
  server.on('upgrade', upgrades({ secret, now, proved, giver, enter: here.enter }))
  async function look(): Promise<void> {
    if (own !== undefined || (await forwarder.reaches())) unreachedSince = undefined
    else unreachedSince ??= performance.now()
  }
  return {
    address,
    server,
    routing(request, response) {
      const listener = serving()
      if (listener !== undefined) listener(request, response)
      // Passed on by mistake to where clients are served: it must not go round in a circle.
      else if (request.headers[NODE_PROOF] !== undefined)
        answer(response, 503, 'M_UNKNOWN', 'This node does not serve, and was asked by one that does not either.')
      else if (answersItself(request, response)) return
      // While none serves, this node cannot know that what it reads is the newest.
      else if (elsewhere === undefined || !isElsewhereAlike || !here.take(request, response))
        void forwarder.pass(request, response)
    },
    readHere: here.begin,
    passOn: here.passOn,
    passTo(there, isAlike = true) {
      if (there !== elsewhere) forwarder.turnAway()
      elsewhere = there
      isElsewhereAlike = isAlike
      here.passTo(isAlike ? there : undefined)
    },
    serve(listener, isHeld, desk, batchDesk) {
      own = { listener: counted(listener), isHeld }
      const batches = batchDesk && createBatchesIn({ desk: batchDesk, log, isHeld, begin })
      news = desk && createNewsGiver({ secret, now, desk, batches, log, isHeld })
      here.end()
      forwarder.turnAway()
    },
    retire() {
      own = undefined
      elsewhere = undefined
      news?.end()
      news = undefined
      return new Promise((resolve) => {
        allAnswered = resolve
        if (begun === 0) resolve()
      })
    },
    isAwaiting: async () => forwarder.passing() > 0 && !(await forwarder.reaches()),
    finish() {
      here.end()
      forwarder.finish()
    },
    begun: () => begun,
    async isOpen() {
      looking ??= look().finally(() => {
        looking = undefined
      })
      // Who asks has little patience, and a busy node may answer late: until it does, what was found before counts.
      await Promise.race([looking, delay(OPEN_LOOK_MS, undefined, { ref: false })])
      const isOpen =
        unreachedSince === undefined || performance.now() - unreachedSince < NODE_LEASE_MS + NODE_LEASE_MARGIN_MS
      // What was sent before their network failed would wait for as long as its client does.
      if (!isOpen) forwarder.giveUp()
      return isOpen
    },
    close() {
      here.end()
      news?.end()
      forwarder.giveUp()
    },
  }
}

/** Takes connections of other nodes that do not go on as HTTP. */
function upgrades(
  parts: Pick<FrontParts, 'secret' | 'now'> & {
    readonly proved: (request: IncomingMessage) => void
    /** Undefined while this node does not serve. */
    readonly giver: () => NewsGiver | undefined
    readonly enter: Reading['enter']
  },
) {
  return (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (!isOfNode(parts, request)) {
      refuseUpgrade(socket, '403 Forbidden')
      return
    }
    parts.proved(request)
    const { url = '', headers } = request
    const giver = url === NEWS_PATH && headers.upgrade === NEWS_PROTOCOL ? parts.giver() : undefined
    if (giver !== undefined) giver.enter(socket, head)
    else if (headers.upgrade !== VERSION_PROTOCOL || !parts.enter(socket, wordIn(url)))
      refuseUpgrade(socket, '503 Service Unavailable')
  }
}

/** A node is believed about the addresses of clients. */
function markNode(socket: Socket): void {
  Object.defineProperty(socket, 'remoteAddress', { value: NODE_PEER })
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', ({ code = '' }: NodeJS.ErrnoException) => {
      const why = code === 'EADDRINUSE' ? 'something listens there already' : code
      reject(new Error(`cannot listen for other nodes on ${host}:${port}: ${why}; see cluster.host and cluster.port`))
    })
    // Nodes that share the ports for clients have one each for this.
    server.listen({ port, host, exclusive: true }, resolve)
  })
}

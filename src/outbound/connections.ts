import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { LookupFunction, Socket } from 'node:net'
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls'
import type { Logger } from 'pino'
import type * as undici from 'undici'
import type { Config } from '../config/schema.ts'
import { createCache } from '../core/cache.ts'
import { type AddressGuard, createAddressGuard } from './addresses.ts'
import { RefusedError } from './failures.ts'
import { createLoopTurns } from './loop-turns.ts'
import { createNames, type Names } from './names.ts'
import { Places } from './places.ts'
import { createProxy, type TunnelProxy } from './proxy/proxy.ts'
import { bare, isLiteral, type Place } from './url-place.ts'
import { countWaitingRequests, type WaitingRequests } from './waiting-requests.ts'

/** The parts of undici that are used. Its entry loads fetch, web sockets, caches and mocks too: a megabyte of a server at rest. */
const load = createRequire(import.meta.url)
const dispatcher: typeof undici.Dispatcher = load('undici/lib/dispatcher/dispatcher.js')
const Pool: typeof undici.Pool = load('undici/lib/dispatcher/pool.js')
const Client: typeof undici.Client = load('undici/lib/dispatcher/client.js')
const buildConnector: typeof undici.buildConnector = load('undici/lib/core/connect.js')
// As the entry does: `request` and the like are methods of every dispatcher.
Object.assign(dispatcher.prototype, load('undici/lib/api/index.js'))

export interface PeerCertificate {
  readonly validUntil: number
  /** The issuer's name for itself. */
  readonly issuer: string
}

/** The last certificate that was seen of a server. */
interface Peer {
  certificate: PeerCertificate | undefined
}

interface Open {
  readonly client: undici.Client
  readonly socket: Socket
}

/** Connections to one address under one name. */
export interface Target {
  readonly key: string
  readonly pool: undici.Pool
  /** The pool for requests that do not count themselves while they wait. */
  readonly dispatcher: undici.Dispatcher
  /** Those without a connection. */
  readonly waiting: WaitingRequests
  readonly peer: Peer
  readonly places: Places
  /** Its open connections, where there is a bound on those of all. */
  readonly open: Set<Open>
  /** Requests in flight. */
  running: number
}

/** The connections to all servers that this server calls. None goes to an address that the guard refuses. */
export interface Connections {
  /** The connections to an address under the name in a URL. @throws RefusedError if the address must not be called */
  to(url: URL, place: Place): Target
  /** Closes a target without requests, so that servers that are asked once, or are gone, leave nothing behind. */
  forgetIdle(target: Target): void
  close(): Promise<void>
}

export interface ConnectionOptions {
  readonly config: Pick<Config, 'outbound'>
  readonly log: Logger
  /** Resolves names; DNS by default. */
  readonly names?: Names
  /** The most connections to one target. */
  readonly connections?: number
  /** The most connections to all targets that stay open, unless all of them have requests. */
  readonly openConnections?: number
  /** Whether answers include the certificate. */
  readonly readsCertificates?: boolean
}

const CONNECT_TIMEOUT_MS = 5_000
const OLDEST_TLS = 'TLSv1.2'
const CONNECTIONS_PER_TARGET = 8
/** New connections that may begin in one turn of the event loop. */
const CONNECTIONS_PER_TURN = 8
/** Targets with open connections. The least recently used one is closed. */
const MAX_TARGETS = 1_000
/** How long an idle connection stays open, whatever the other side offers. It takes a tenth of a megabyte. */
const KEPT_MS = 60_000
/** The largest header of an answer; other servers have no reason to send more. */
const MAX_HEADER_BYTES = 16_384

export async function openConnections(options: ConnectionOptions): Promise<Connections> {
  const { allow_ranges, ca_file } = options.config.outbound
  const guard = createAddressGuard(allow_ranges)
  const names = options.names ?? createNames()
  const proxy = createProxy(options.config.outbound)
  const direct = buildConnector({
    lookup: guardedLookup(names, guard),
    timeout: CONNECT_TIMEOUT_MS,
    // One context for all: each would take time and memory to make.
    secureContext: await trusting(ca_file),
  } as undici.buildConnector.BuildOptions)
  const connect = proxy === undefined ? direct : throughProxy(proxy, direct, (host) => addressesOf(names, guard, host))
  /** A handshake takes a millisecond or two: those of a hundred servers at once would block everything else. */
  const nextTurn = createLoopTurns(CONNECTIONS_PER_TURN)
  const targets = createCache<string, Target>(MAX_TARGETS, {
    dispose: ({ pool }) =>
      void pool.close().catch((err: unknown) => options.log.debug({ err }, 'a pool did not close')),
  })
  const { openConnections } = options
  const factoryFor =
    openConnections === undefined ? undefined : keepingOpen(openConnections, () => [...targets.values()].reverse())

  /** @throws RefusedError if the address must not be called. One of a known target was allowed. */
  function targetFor(url: URL, { host, port }: Place): Target {
    const servername = url.hostname
    const key = `${url.protocol}//${host}:${port} ${servername}`
    const known = targets.get(key)
    if (known !== undefined) return known
    if (isLiteral(host) && !guard(bare(host))) throw refusedAddress(bare(host))
    const peer: Peer = { certificate: undefined }
    const waiting = countWaitingRequests()
    const open = new Set<Open>()
    const pool = new Pool(`${url.protocol}//${host}:${port}`, {
      connect(wanted, done) {
        const begin = () => {
          if (waiting.count === 0) return done(new Error('nobody waits for a connection'), null)
          connect(isLiteral(servername) ? wanted : { ...wanted, servername }, (...made) => {
            if (options.readsCertificates) peer.certificate = certificateOf(made[1] ?? null) ?? peer.certificate
            done(...made)
          })
        }
        nextTurn()
          .then(begin)
          .catch((error: Error) => done(error, null))
      },
      ...(factoryFor && { factory: factoryFor(open) }),
      connections: options.connections ?? CONNECTIONS_PER_TARGET,
      keepAliveMaxTimeout: KEPT_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      // The whole request has its own time limit.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    const dispatcher = pool.compose(waiting.interceptor)
    const target = { key, pool, dispatcher, waiting, peer, places: new Places(), open, running: 0 }
    targets.set(key, target)
    pool.on('disconnect', () => forgetIdle(target))
    return target
  }

  function forgetIdle(target: Target): void {
    const { key, pool, running } = target
    if (running === 0 && pool.stats.connected === 0 && targets.peek(key) === target) targets.delete(key)
  }

  return {
    forgetIdle,
    to: targetFor,
    async close() {
      await Promise.all([...targets.values()].map(({ pool }) => pool.destroy()))
      targets.clear()
    },
  }
}

/**
 * Makes the connections of pools. If more than so many of all are open, some without a request are closed: of the target that was used least
 * recently first. Requests themselves pay nothing for that.
 */
function keepingOpen(most: number, oldestFirst: () => Iterable<Pick<Target, 'open'>>) {
  let count = 0

  function gone(open: Set<Open>, one: Open): void {
    if (open.delete(one)) count--
  }

  function closeSome(): void {
    for (const { open } of oldestFirst()) {
      // A pool uses the first of its connections that is free: the last ones have rested for longest.
      for (const one of [...open].reverse()) {
        if (count <= most) return
        if (one.client.stats.size > 0) continue
        gone(open, one)
        one.socket.destroy()
      }
    }
  }

  return (open: Set<Open>): NonNullable<undici.Pool.Options['factory']> =>
    (origin, options) => {
      const { connect, ...rest } = options as { readonly connect: undici.buildConnector.connector }
      const client = new Client(origin, {
        ...rest,
        connect(wanted, done) {
          connect(wanted, (...made) => {
            const [, socket] = made
            // Where connecting failed, undici leaves it out, although the type says otherwise.
            if (socket && !socket.destroyed) {
              const one = { client, socket }
              open.add(one)
              count++
              socket.once('close', () => gone(open, one))
              if (count > most) closeSome()
            }
            done(...made)
          })
        },
      })
      return client
    }
}

function certificateOf(socket: Socket | null): PeerCertificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined
  // Empty if an earlier connection is resumed, although the type says otherwise.
  const { valid_to, issuer }: Partial<ReturnType<TLSSocket['getPeerCertificate']>> = socket.getPeerCertificate()
  if (valid_to === undefined) return undefined
  return { validUntil: Date.parse(valid_to), issuer: [issuer?.O ?? issuer?.CN ?? ''].flat().join(', ') }
}

/**
 * Connects through the proxy, except to what the operator exempts. The address is resolved and checked here, and the proxy is told that
 * address, so that no name can lead it elsewhere.
 */
function throughProxy(
  proxy: TunnelProxy,
  direct: undici.buildConnector.connector,
  resolve: (host: string) => Promise<readonly string[]>,
): undici.buildConnector.connector {
  async function open(wanted: undici.buildConnector.Options): Promise<Socket | undefined> {
    const host = bare(wanted.hostname)
    const port = Number(wanted.port || (wanted.protocol === 'https:' ? 443 : 80))
    const addresses = isLiteral(host) ? [host] : await resolve(host)
    return proxy.connect([wanted.servername ?? host, host], addresses, port, CONNECT_TIMEOUT_MS)
  }
  return (wanted, done) => {
    open(wanted).then(
      (socket) => {
        if (socket === undefined) direct(wanted, done)
        else if (wanted.protocol === 'https:') direct({ ...wanted, httpSocket: socket }, done)
        else done(null, socket)
      },
      (error: Error) => done(error, null),
    )
  }
}

/** The addresses of a host that may be called. @throws RefusedError if there is none */
async function addressesOf(names: Names, guard: AddressGuard, host: string): Promise<readonly string[]> {
  const found = await names.addressesOf(host)
  const allowed = found.map(({ address }) => address).filter(guard)
  if (allowed.length > 0) return allowed
  throw refusedAddress(`${host} (${found.map(({ address }) => address).join(', ')})`)
}

/** Resolves names at the moment of connecting, so that the checked address is the one that is used. */
function guardedLookup(names: Names, guard: AddressGuard): LookupFunction {
  return (host, { all }, callback) => {
    const fail = (error: Error): void => callback(error, [])
    names.addressesOf(host).then((found) => {
      const [first, ...others] = found.filter(({ address }) => guard(address))
      if (first === undefined)
        return fail(refusedAddress(`${host} (${found.map(({ address }) => address).join(', ')})`))
      if (all) callback(null, [first, ...others])
      else callback(null, first.address, first.family)
    }, fail)
  }
}

function refusedAddress(address: string): RefusedError {
  return new RefusedError(`${address} is not on the public internet; outbound.allow_ranges opens other networks`)
}

/** The certificate authorities. @param caFile a further authority */
async function trusting(caFile: string | undefined): Promise<SecureContext> {
  const secureContext = createSecureContext({ minVersion: OLDEST_TLS })
  if (caFile === undefined) return secureContext
  try {
    const ca = await readFile(caFile, 'utf8')
    // Throws if the file is no certificate; the context would silently ignore it.
    new X509Certificate(ca)
    const { context } = secureContext as { context: { addCACert(ca: string): void } }
    // As an option it would replace the usual authorities, and reading those again takes 50 ms.
    context.addCACert(ca)
    return secureContext
  } catch (error) {
    throw new Error(`outbound.ca_file: ${caFile} cannot be used: ${(error as Error).message}`)
  }
}

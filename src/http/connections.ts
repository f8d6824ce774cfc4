import type { Server, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type TLSSocket, Server as TlsServer } from 'node:tls'
import type { Logger } from 'pino'
import type { ArrivalMetrics, ConnectionEnd } from '../domain/arrival-metrics.ts'
import { networkOf } from '../domain/network.ts'
import { onceAMinute } from '../domain/once-a-minute.ts'
import { addressMatcher, normaliseIp } from './client-address.ts'
import { noteQueued } from './queued-answers.ts'

/** Limits the number of connections, for each address and in total, over all ports. What a connection held is free when it ends. */
export interface Connections {
  /** @param isBehindProxy whether connections from this machine may be a reverse proxy, which serves many clients */
  bound(server: Server, isBehindProxy: boolean): void
  /** Ends those that have never sent anything, also those whose TLS handshake is all: Node counts them among the busy ones. */
  endSilent(): void
}

export interface ConnectionBounds {
  readonly inAll: number
  readonly perAddress: number
  readonly trustedProxies: readonly string[]
}

const LOOPBACK = ['127.0.0.0/8', '::1/128']

export function createConnections(
  { inAll, perAddress, trustedProxies }: ConnectionBounds,
  { metrics, log }: { readonly metrics: ArrivalMetrics; readonly log: Logger },
): Connections {
  const isTrusted = addressMatcher(trustedProxies)
  const isLocal = addressMatcher(LOOPBACK)
  const ofAddress = new Map<string, number>()
  /** Connections that had sent nothing at the last check, oldest first. After its handshake, one with TLS is here again, as what is inside it. */
  const silent = new Set<Socket>()
  /** Connections whose handshake is not over, by what they share with what is inside them. */
  const handshaking = new Map<string, Socket>()
  const ended = new WeakSet<Duplex>()
  let open = 0
  metrics.watchConnections(() => open)
  const tellOf: Readonly<Record<ConnectionEnd, () => void>> = {
    address: onceAMinute((times) => log.warn({ times, perAddress }, 'connections were ended: too many of one address')),
    all: onceAMinute((times) => log.warn({ times, inAll }, 'connections were ended: too many in all')),
    'made room': onceAMinute((times) =>
      log.warn({ times, inAll }, 'connections that had sent nothing were ended: too many in all'),
    ),
    silent: onceAMinute((times) => log.warn({ times }, 'connections were ended that sent no whole request in time')),
  }

  function note(reason: ConnectionEnd): void {
    metrics.endedConnection(reason)
    tellOf[reason]()
  }

  function end(socket: Socket, reason: ConnectionEnd): void {
    socket.destroy()
    note(reason)
  }

  /** The oldest connection that has never sent anything. Connections that have are removed from the list here. */
  function takeSilent(): Socket | undefined {
    for (const socket of silent) {
      silent.delete(socket)
      if (socket.bytesRead === 0 && !socket.destroyed) return socket
    }
    return undefined
  }

  function makeRoom(): boolean {
    const socket = takeSilent()
    if (socket !== undefined) end(socket, 'made room')
    return socket !== undefined
  }

  function enter(socket: Socket, key: string | undefined): void {
    open++
    silent.add(socket)
    if (key !== undefined) ofAddress.set(key, (ofAddress.get(key) ?? 0) + 1)
    socket.once('close', () => {
      open--
      silent.delete(socket)
      const left = key === undefined ? 0 : (ofAddress.get(key) ?? 1) - 1
      if (key === undefined) return
      if (left > 0) ofAddress.set(key, left)
      else ofAddress.delete(key)
    })
  }

  function watchHandshakes(server: TlsServer): void {
    server.on('connection', (socket: Socket) => {
      const key = endsOf(socket)
      handshaking.set(key, socket)
      socket.once('close', () => {
        if (handshaking.get(key) === socket) handshaking.delete(key)
      })
    })
    server.on('secureConnection', (socket: TLSSocket) => {
      handshaking.delete(endsOf(socket))
      silent.add(socket)
      socket.once('close', () => silent.delete(socket))
    })
  }

  return {
    bound(server, isBehindProxy) {
      server.prependListener('request', noteQueued)
      if (server instanceof TlsServer) watchHandshakes(server)
      server.on('connection', (socket: Socket) => {
        const address = normaliseIp(socket.remoteAddress ?? '')
        const isProxy = address !== undefined && (isTrusted(address) || (isBehindProxy && isLocal(address)))
        const key = address === undefined || isProxy ? undefined : networkOf(address)
        if (key !== undefined && (ofAddress.get(key) ?? 0) >= perAddress) end(socket, 'address')
        else if (open >= inAll && !makeRoom()) end(socket, 'all')
        else enter(socket, key)
      })
      server.on('clientError', ({ code }: NodeJS.ErrnoException, socket: Duplex) => {
        if (code !== 'ERR_HTTP_REQUEST_TIMEOUT' || ended.has(socket)) return
        ended.add(socket)
        note('silent')
      })
    },
    endSilent() {
      for (let socket = takeSilent(); socket !== undefined; socket = takeSilent()) socket.destroy()
      for (const socket of handshaking.values()) socket.destroy()
    },
  }
}

function endsOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): string {
  return `${localAddress} ${localPort} ${remoteAddress} ${remotePort}`
}

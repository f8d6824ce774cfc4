import cluster from 'node:cluster'
import { chmod, lstat, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { UNIX_PEER } from './client-address.ts'
import type { Connections } from './connections.ts'
import { judgeFirst } from './expect-continue.ts'
import { answerBrokenRequest, CONNECTIONS, type Routed } from './server.ts'

/** Where a socket is, and who may connect to it: its mode, such as `660`. */
export interface SocketPlace {
  readonly path: string
  readonly mode: string
}

/** A listener on a unix socket that serves the same as HTTP. Who can connect is a reverse proxy: it is believed about its clients. */
export async function listenUnix(app: Routed, place: SocketPlace, connections: Connections): Promise<Server> {
  const server = createServer(CONNECTIONS, app.routing)
  server.prependListener('connection', markPeer)
  connections.bound(server, true)
  judgeFirst(server, app.routing)
  server.on('clientError', answerBrokenRequest)
  await listenAt(server, place, 'listen.socket')
  return server
}

/** Such a connection has no address; a closed one has none either, and must not be taken for one. */
function markPeer(socket: Socket): void {
  Object.defineProperty(socket, 'remoteAddress', { value: UNIX_PEER })
}

/**
 * Has a server listen on a unix socket. One that a killed server left there is removed first.
 * @param option named in errors @throws Error if something listens there, or what is there is no socket
 */
export async function listenAt(server: Server, { path, mode }: SocketPlace, option: string): Promise<void> {
  try {
    // Nodes of one machine share the socket, and the process that started them has looked.
    if (!cluster.isWorker) await removeStale(path)
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(path, resolve)
    })
    // Until here only the owner can connect, unless the umask lets others.
    await chmod(path, Number.parseInt(mode, 8))
  } catch (error) {
    server.close()
    throw new Error(`cannot listen on ${path}: ${(error as Error).message}; see ${option}`)
  }
}

/** Makes room for a socket that several processes will share. @throws as `listenAt` */
export async function freeSocketPath(path: string, option: string): Promise<void> {
  await removeStale(path).catch((error: Error) => {
    throw new Error(`cannot listen on ${path}: ${error.message}; see ${option}`)
  })
}

async function removeStale(path: string): Promise<void> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (found === undefined) return
  if (!found.isSocket()) throw new Error('something is there that is no socket')
  if (await isListening(path)) throw new Error('something listens there already')
  await rm(path, { force: true })
}

/** Whether somebody listens; when in doubt, yes. */
function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    const end = (isThere: boolean) => {
      socket.destroy()
      resolve(isThere)
    }
    socket.once('connect', () => end(true))
    socket.once('error', ({ code }: NodeJS.ErrnoException) => end(code !== 'ECONNREFUSED' && code !== 'ENOENT'))
  })
}

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/**
 * A process that asks for syncs on raw sockets: loops of first syncs, whose answers it reads as fast as they come and throws away,
 * and held ones, of which it counts those that were answered.
 */

export interface SyncLoopTask {
  readonly host: string
  readonly port: number
  readonly token: string
  /** First syncs that follow one another, side by side. */
  readonly loops: number
  /** Syncs that are held with this position. */
  readonly held: number
  readonly since: string
  readonly filter: string
}

export interface SyncLoopResult {
  readonly answers: number
  readonly bytes: number
  /** Of held syncs. */
  readonly answered: number
  readonly failed: number
}

const HELD_MS = 300_000
/** A thousand in a second: the storm of connections is another attack. */
const CONNECT_WIDTH = 20

const result = { answers: 0, bytes: 0, answered: 0, failed: 0 }
const sockets = new Set<Socket>()

process.on('disconnect', () => process.exit(0))
process.once('message', (task: SyncLoopTask) => {
  begin(task).then(
    () => process.send?.({ ready: true }),
    (error: Error) => {
      console.error(error.message)
      process.exit(1)
    },
  )
})

async function begin(task: SyncLoopTask): Promise<void> {
  for (let index = 0; index < task.loops; index++) void loop(task)
  for (let index = 0; index < task.held; index++) {
    hold(task)
    if (index % CONNECT_WIDTH === CONNECT_WIDTH - 1) await pause(20)
  }
  process.once('message', () => {
    process.send?.(result)
    for (const socket of sockets) socket.destroy()
  })
}

function ask({ host, port, token }: SyncLoopTask, query: string): Socket {
  const socket = connect(port, host)
  sockets.add(socket)
  socket.once('close', () => sockets.delete(socket))
  const lines = ['host: bench', `authorization: Bearer ${token}`, 'connection: close']
  socket.write(`GET /_matrix/client/v3/sync?${query} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
  return socket
}

async function loop(task: SyncLoopTask): Promise<void> {
  for (;;) {
    const socket = ask(task, `timeout=0&filter=${encodeURIComponent(task.filter)}`)
    socket.on('data', (chunk) => {
      result.bytes += chunk.length
    })
    socket.on('error', () => {
      result.failed += 1
    })
    await once(socket, 'close')
    result.answers += 1
  }
}

function hold(task: SyncLoopTask): void {
  const socket = ask(task, `timeout=${HELD_MS}&since=${encodeURIComponent(task.since)}`)
  socket.once('data', () => {
    result.answered += 1
  })
  socket.on('data', () => {})
  socket.on('error', () => {
    result.failed += 1
  })
}

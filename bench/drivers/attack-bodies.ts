import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { createAuthority } from '../../test/support/certificate.ts'
import { openStubServers } from '../federation/stub-servers.ts'

/** A process that attacks with bodies and connections, and is a server whose keys can be had. */

export interface AttackReady {
  readonly caFile: string
  readonly serverName: string
}

export interface AttackTask {
  readonly host: string
  readonly port: number
  readonly connections: number
  /** What each says first; nothing where it is empty. */
  readonly head: string
  /** What each says after that, so much at a time, in so long; it never says more than `bodyBytes`. */
  readonly bodyBytes: number
  readonly pieceBytes: number
  readonly everyMs: number
  /** How long the attack goes on. Where connections are opened again when they are ended, they are for so long. */
  readonly ms: number
  readonly reopens: boolean
}

export interface AttackResult {
  /** Answers by their status; `none` for connections that ended without. */
  readonly answers: Readonly<Record<string, number>>
  /** When the last connection was ended by the other side, from the beginning; undefined where some were not. */
  readonly allEndedMs: number | undefined
}

const REOPEN_AFTER_MS = 500
const OPENED_AT_ONCE = 250

process.on('disconnect', () => process.exit(0))
process.once('message', async () => {
  const authority = createAuthority()
  const stubs = await openStubServers(authority, 1, () => undefined)
  process.on('message', (task: AttackTask) => {
    attack(task).then(
      (result) => process.send?.(result),
      (error: Error) => {
        console.error(error.message)
        process.exit(1)
      },
    )
  })
  process.send?.({ caFile: authority.file, serverName: stubs.all[0]!.name } satisfies AttackReady)
})

async function attack(task: AttackTask): Promise<AttackResult> {
  const begun = performance.now()
  const answers: Record<string, number> = {}
  const open = new Set<Socket>()
  let isOver = false
  let lastEnd = 0

  async function one(): Promise<void> {
    do {
      await connection()
      if (task.reopens && !isOver) await pause(REOPEN_AFTER_MS)
    } while (task.reopens && !isOver)
  }

  async function connection(): Promise<void> {
    const socket = connect({ host: task.host, port: task.port })
    open.add(socket)
    let answer = ''
    socket.on('data', (chunk) => {
      if (answer.length < 20) answer += chunk.toString('latin1').slice(0, 20)
    })
    socket.on('error', () => undefined)
    const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    if (task.head !== '') socket.write(task.head)
    void sayThe(task, socket, () => isOver || answer !== '')
    await ended
    open.delete(socket)
    if (isOver) return
    const status = answer === '' ? 'none' : (answer.split(' ')[1] ?? 'none')
    answers[status] = (answers[status] ?? 0) + 1
    lastEnd = performance.now() - begun
  }

  const all: Promise<void>[] = []
  for (let count = 0; count < task.connections; count++) {
    all.push(one())
    if (count % OPENED_AT_ONCE === OPENED_AT_ONCE - 1) await pause(50)
  }
  const everyEnd = Promise.all(all).then(() => true)
  const allEnded = await Promise.race([everyEnd, pause(task.ms).then(() => false)])
  isOver = true
  for (const socket of open) socket.destroy()
  await everyEnd
  return { answers, allEndedMs: allEnded ? lastEnd : undefined }
}

async function sayThe(task: AttackTask, socket: Socket, isDone: () => boolean): Promise<void> {
  const piece = Buffer.alloc(task.pieceBytes, ' ')
  for (let sent = 0; sent < task.bodyBytes && !socket.destroyed && !isDone(); sent += piece.length) {
    const isTaken = socket.write(piece.subarray(0, task.bodyBytes - sent))
    if (!isTaken) await Promise.race([drained(socket), pause(1_000)])
    if (task.everyMs > 0) await pause(task.everyMs)
  }
}

const drained = (socket: Socket) => new Promise<void>((resolve) => socket.once('drain', () => resolve()))

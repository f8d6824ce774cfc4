import { hrtime } from 'node:process'
import { Worker } from 'node:worker_threads'
import { nodeProof } from '../../core/signing/node-proof.ts'
import { NEWS_HEARTBEAT_MS } from '../../domain/limits/cluster.ts'
import type { SyncDesk } from '../../domain/standby/sync-desk.ts'
import { UNKNOWN_VERSION, VERSION_BYTES, VERSION_PROTOCOL, type VersionCall, versionPath } from './news-frames.ts'
import { NODE_PROOF, passedOn } from './node-listener.ts'
import { placeOf } from './place-of.ts'

/**
 * Tells other nodes at once whether anything has changed here, however busy the event loop is: the version of all that syncs show is a number
 * in shared memory that grows with every change, before who made it hears that it is done, and a thread says what it is.
 */
export interface VersionThread {
  /** The number now; undefined while the thread does not run. */
  version(): number | undefined
  /** Has the thread connect to a node that asks. Its connection before ends. @throws Error if that is no address */
  connect(node: number, to: VersionCall): void
  disconnect(node: number): void
  /** To be called every `NEWS_HEARTBEAT_MS`: without it, the thread counts no more on this node's having its place. */
  beat(): void
  close(): void
}

/**
 * So long after the node was last known to have its place, the thread still answers: less than the margin of a lease, so that no other node can
 * serve by then.
 */
const HELD_NS = 2n * BigInt(NEWS_HEARTBEAT_MS) * 1_000_000n
const CONNECT_MS = 1_500
const MAX_HEAD_BYTES = 4_096
const MAX_WAITING_BYTES = 4_096
/** It makes no more than a few small objects for each question. */
const MEMORY = { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16 }

/** What is shared: the version, and how long the node has its place, by `hrtime`, which is the same clock in all threads. */
const VERSION = 0
const HELD_UNTIL = 1

/** The program is text and not a file, so that it is the same from source, from the build and in one bundled file. */
const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads')
const { connect } = require('node:net')
const { hrtime } = require('node:process')
const shared = workerData
const sockets = new Map()
function version() {
  const version = Atomics.load(shared, ${VERSION})
  // In this order: if the node has its place after that was read, it had it then.
  return hrtime.bigint() < Atomics.load(shared, ${HELD_UNTIL}) ? Number(version) : ${UNKNOWN_VERSION}
}
function open(node, { host, port, request }) {
  const socket = connect({ host, port, noDelay: true })
  sockets.set(node, socket)
  let head = ''
  let isOpen = false
  socket.setTimeout(${CONNECT_MS}, () => socket.destroy())
  socket.on('error', () => {})
  socket.once('close', () => {
    if (sockets.get(node) === socket) sockets.delete(node)
    if (sockets.size === 0) parentPort.close()
  })
  function answer(questions) {
    // Who does not read what it asked for.
    if (questions + socket.writableLength > ${MAX_WAITING_BYTES}) return void socket.destroy()
    const answers = Buffer.alloc(questions * ${VERSION_BYTES})
    for (let n = 0; n < questions; n++) answers.writeDoubleLE(version(), n * ${VERSION_BYTES})
    socket.write(answers)
  }
  socket.on('data', (chunk) => {
    if (isOpen) return answer(chunk.length)
    head += chunk.toString('latin1')
    const end = head.indexOf('\\r\\n\\r\\n')
    isOpen = end >= 0 && head.startsWith('HTTP/1.1 101 ')
    if (!isOpen) {
      if (end >= 0 || head.length > ${MAX_HEAD_BYTES}) socket.destroy()
      return
    }
    socket.setTimeout(0)
    // The first question may come with the head.
    if (head.length > end + 4) answer(head.length - end - 4)
  })
  socket.write(request)
}
parentPort.on('message', ({ node, to }) => {
  sockets.get(node)?.destroy()
  if (to) open(node, to)
})
`

export function createVersionThread({
  secret,
  now,
  desk,
  isHeld,
}: {
  readonly secret: string
  readonly now: () => number
  readonly desk: Pick<SyncDesk, 'follow'>
  isHeld(): boolean
}): VersionThread {
  const shared = new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT))
  const moved = (): void => void Atomics.add(shared, VERSION, 1n)
  const follower = { room: moved, user: moved, began: moved, moved, missed: moved, ended: moved }
  let thread: Worker | undefined
  let isClosed = false

  function start(): Worker | undefined {
    const unfollow = desk.follow(follower)
    if (unfollow === undefined) return undefined
    // What changed while nobody counted.
    moved()
    beat()
    const started = new Worker(PROGRAM, { eval: true, execArgv: [], workerData: shared, resourceLimits: MEMORY })
    started.unref()
    // Without it, this event loop is asked.
    started.on('error', () => {})
    started.once('exit', () => {
      unfollow()
      if (thread === started) thread = undefined
    })
    return started
  }

  /** A request for an upgrade, as it is sent. */
  function requestOf(url: string): string {
    const proof = nodeProof(secret, passedOn({ method: 'GET', url, headers: {} }), now())
    const upgrade = `connection: upgrade\r\nupgrade: ${VERSION_PROTOCOL}`
    return `GET ${url} HTTP/1.1\r\nhost: node\r\n${NODE_PROOF}: ${proof}\r\n${upgrade}\r\n\r\n`
  }

  function beat(): void {
    // Read first: the process may be stopped before the next line.
    const now = hrtime.bigint()
    if (!isClosed && isHeld()) Atomics.store(shared, HELD_UNTIL, now + HELD_NS)
  }

  return {
    version: () => (thread === undefined ? undefined : Number(Atomics.load(shared, VERSION))),
    connect(node, to) {
      const place = placeOf(to.address)
      const request = requestOf(versionPath(to.word))
      if (isClosed) return
      thread ??= start()
      thread?.postMessage({ node, to: { ...place, request } })
    },
    disconnect: (node) => thread?.postMessage({ node }),
    beat,
    close() {
      // Another node may serve at once.
      isClosed = true
      Atomics.store(shared, HELD_UNTIL, 0n)
      void thread?.terminate()
    },
  }
}

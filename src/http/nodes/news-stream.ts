import { type IncomingMessage, request as send } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { nodeProof } from '../../core/signing/node-proof.ts'
import {
  ASKED_PIECE_BYTES,
  MAX_ASKED_UNDER_WAY,
  MAX_NEWS_BACKLOG_BYTES,
  NEWS_HEARTBEAT_MS,
  NEWS_RETRY_MAX_MS,
  NEWS_RETRY_MS,
  NEWS_SILENCE_MS,
} from '../../domain/limits/cluster.ts'
import type { FollowedLook, ServingNode, Woken } from '../../domain/standby/quiet-syncs.ts'
import type { AskedSync } from '../../domain/standby/sync-desk.ts'
import type { BatchedAnswer, BatchedRequest } from './batched.ts'
import { BatchesOut } from './batches-out.ts'
import {
  type Frame,
  type FrameKind,
  FrameReader,
  frameOf,
  HAS_VERSION,
  NEWS_PATH,
  NEWS_PROTOCOL,
  type NumberedSync,
  TAKES_BATCHES,
} from './news-frames.ts'
import { NODE_PROOF, passedOn } from './node-listener.ts'
import { placeOf } from './place-of.ts'
import { type Positioned, VersionLine } from './version-line.ts'

/** Hears of what wakes syncs at the node that serves. */
export interface NewsListener {
  /** From now on everything is heard. */
  began(serving: ServingNode): void
  woken(woken: Woken): void
  /** From now on nothing is heard. */
  lost(): void
}

export interface NewsStream {
  /** From now on that node serves, or none. */
  servedBy(address: string | undefined): void
  /** Whether there is a connection to a node that takes requests in batches. */
  takesBatches(): boolean
  /** Passes a request on together with others. Undefined if it has to be passed on whole; it may have been done then. */
  inBatch(request: BatchedRequest): Promise<BatchedAnswer | undefined>
  /** A thread of the node that serves has connected, and shows this word. @returns false if it was not asked to */
  enter(socket: Duplex, word: string): boolean
  close(): void
}

const PATIENCE_MS = 1_500

/** Follows the node that serves, whichever that is, and comes back after each interruption. */
export function createNewsStream(parts: {
  readonly secret: string
  readonly now: () => number
  readonly listener: NewsListener
  /** Where this node listens for others. Without it, nobody is asked to connect. */
  readonly ownAddress?: string | undefined
  /** How soon it asks again to follow; sooner in tests. */
  readonly retryMs?: number
}): NewsStream {
  const { secret, now, listener, ownAddress, retryMs: soonestMs = NEWS_RETRY_MS } = parts
  let address: string | undefined
  let current: { end(): void } | undefined
  let batches: BatchesOut | undefined
  let versions: VersionLine | undefined
  let retry: NodeJS.Timeout | undefined
  let retryMs = soonestMs

  function open(): void {
    clearTimeout(retry)
    if (address === undefined) return
    let isOver = false
    const over = (): void => {
      if (isOver) return
      isOver = true
      // It is no failure that it was ended here.
      if (current !== attempt) return
      current = undefined
      retry = setTimeout(open, retryMs).unref()
    }
    const proof = nodeProof(secret, passedOn({ method: 'GET', url: NEWS_PATH, headers: {} }), now())
    const headers = { [NODE_PROOF]: proof, connection: 'upgrade', upgrade: NEWS_PROTOCOL }
    const asked = send({ ...placeOf(address), path: NEWS_PATH, headers, agent: false, timeout: PATIENCE_MS })
    const attempt = {
      end() {
        isOver = true
        asked.destroy()
      },
    }
    current = attempt
    asked.once('timeout', () => asked.destroy())
    asked.once('error', over)
    asked.once('response', (incoming: IncomingMessage) => {
      incoming.resume()
      asked.destroy()
      // An earlier release does not know what is asked for, however often.
      retryMs = incoming.statusCode === 404 ? Math.min(2 * retryMs, NEWS_RETRY_MAX_MS) : soonestMs
      over()
    })
    asked.once('upgrade', ({ headers }, socket: Socket, head) => {
      socket.setTimeout(0)
      retryMs = soonestMs
      if (current !== attempt) {
        socket.destroy()
        return
      }
      attempt.end = () => void socket.destroy()
      const here = headers[HAS_VERSION] === undefined ? undefined : ownAddress
      const heard = hear({ socket, head, listener, here }, over)
      versions = heard.versions
      if (headers[TAKES_BATCHES] !== undefined) batches = heard.batches
      socket.once('close', () => {
        if (batches === heard.batches) batches = undefined
        if (versions === heard.versions) versions = undefined
      })
    })
    asked.end()
  }

  function stop(): void {
    clearTimeout(retry)
    const before = current
    current = undefined
    before?.end()
  }

  return {
    servedBy(there) {
      if (there === address) return
      address = there
      retryMs = soonestMs
      stop()
      open()
    },
    takesBatches: () => batches !== undefined,
    inBatch: (request) => batches?.send(request) ?? Promise.resolve(undefined),
    enter: (socket, word) => versions?.enter(socket, word) ?? false,
    close() {
      address = undefined
      stop()
    },
  }
}

/** The heads of `look` for these syncs. */
function piecesOf(syncs: readonly NumberedSync[]): string[] {
  const pieces: string[] = []
  let piece = ''
  for (const sync of syncs) {
    piece += `${piece === '' ? '[' : ','}${JSON.stringify(sync)}`
    if (piece.length < ASKED_PIECE_BYTES) continue
    pieces.push(`${piece}]`)
    piece = ''
  }
  return piece === '' ? pieces : [...pieces, `${piece}]`]
}

/** The head of an `answer`, whatever was asked. */
interface NumberedAnswer extends Omit<FollowedLook, 'body'> {
  readonly id: number
  readonly goesOn?: boolean
  readonly version?: number
}

interface Answer {
  readonly found: NumberedAnswer
  readonly body: Buffer
}

interface Heard {
  readonly socket: Socket
  readonly head: Buffer
  readonly listener: NewsListener
  /** Where a thread of the other node may connect to. */
  readonly here: string | undefined
}

/** Follows one node until the connection ends, or is silent for too long. @returns what passes requests on over it, and asks its thread */
function hear({ socket, head, listener, here }: Heard, over: () => void) {
  const reader = new FrameReader()
  /** What waits for an answer, by number. */
  const waiting = new Map<number, (answer: Answer | undefined) => void>()
  let due: Buffer[] = []
  let toLookAt: NumberedSync[] = []
  let pinging: Promise<Positioned | undefined> | undefined
  let isScheduled = false
  let numbers = 0
  /** How often in a row nothing had come when it was looked. A process that had to wait itself looks less often. */
  let silences = 0

  function schedule(): void {
    if (isScheduled) return
    isScheduled = true
    setImmediate(flush)
  }

  /** One piece for all that was asked in this tick. */
  function flush(): void {
    isScheduled = false
    if (socket.destroyed) return
    for (const piece of piecesOf(toLookAt)) due.push(frameOf('look', piece))
    due.push(...batches.takeDue())
    socket.write(due.length === 1 ? due[0]! : Buffer.concat(due))
    toLookAt = []
    due = []
    pinging = undefined
  }

  /** @param put has it sent under its number */
  function ask(put: (id: number) => void): Promise<Answer | undefined> {
    if (socket.destroyed || waiting.size >= MAX_ASKED_UNDER_WAY || isFull()) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      numbers += 1
      waiting.set(numbers, resolve)
      put(numbers)
      schedule()
    })
  }

  const isFull = (): boolean => socket.writableLength > MAX_NEWS_BACKLOG_BYTES
  const batches = new BatchesOut(schedule, isFull)

  const sendAs = (kind: FrameKind, question: object) => (id: number) =>
    void due.push(frameOf(kind, JSON.stringify({ id, ...question })))

  function take({ kind, head: text, body }: Frame): void {
    if (kind === 'wakes') {
      listener.woken(JSON.parse(text) as Woken)
    } else if (kind === 'batched') {
      batches.answered(text)
    } else if (kind === 'answer') {
      const found = JSON.parse(text) as NumberedAnswer
      const done = waiting.get(found.id)
      waiting.delete(found.id)
      done?.({ found, body })
    }
  }

  function read(chunk: Buffer): void {
    silences = 0
    try {
      for (const frame of reader.read(chunk)) take(frame)
    } catch {
      socket.destroy()
    }
  }

  const versions = new VersionLine(here, (call) => {
    due.push(frameOf('connect', JSON.stringify(call)))
    schedule()
  })

  function ping(): Promise<Positioned | undefined> {
    pinging ??= ask(sendAs('ping', {})).then((answer) => answer?.found)
    return pinging
  }

  const serving: ServingNode = {
    async look(asked: AskedSync) {
      const answer = await ask((id) => void toLookAt.push({ id, ...asked }))
      // Without anything but its number, it is to be passed on.
      return answer?.found.by === undefined ? undefined : { ...answer.found, body: answer.body }
    },
    position: () => versions.position(ping),
    async isGoingOn(tokenNid) {
      const answer = await ask(sendAs('verify', { tokenNid }))
      return answer?.found.goesOn === true
    },
  }

  const watch = setInterval(() => {
    versions.beat()
    silences += 1
    if (silences * NEWS_HEARTBEAT_MS > NEWS_SILENCE_MS) socket.destroy()
  }, NEWS_HEARTBEAT_MS).unref()
  socket.on('error', () => {})
  socket.once('close', () => {
    clearInterval(watch)
    listener.lost()
    for (const done of waiting.values()) done(undefined)
    batches.end()
    versions.close()
    over()
  })
  listener.began(serving)
  if (head.length > 0) read(head)
  socket.on('data', read)
  return { batches, versions }
}

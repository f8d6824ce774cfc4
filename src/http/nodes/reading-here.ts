import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { STANDBY_LAST_ANSWERS_MS } from '../../domain/limits/cluster.ts'
import type { TokensAhead } from './ahead.ts'
import type { BatchedAnswer } from './batched.ts'
import { type BatchingHere, sendBatched } from './batching-here.ts'
import type { Forwarder } from './forwarder.ts'
import { waitingFor } from './patience.ts'

/** What a node that stands by answers itself, or passes on in batches. */
export interface Reading extends BatchingHere {
  readonly isAnywhere: (request: IncomingMessage) => boolean
  /** Whether a request is a sync that has a body, and may be held here. */
  isSlidingSync(request: IncomingMessage): boolean
  /** Takes a sync that it can answer or hold, as the node that serves would. @returns false for all else */
  takeSync(request: IncomingMessage, response: ServerResponse, body?: Buffer): boolean
  /** From now on that node serves, or none. */
  servedBy(address: string | undefined): void
  /** A thread of that node has connected, and shows this word. @returns false if it was not asked to */
  enter(socket: Duplex, word: string): boolean
  /** @param body of a request that is no `GET` */
  routing(request: IncomingMessage, response: ServerResponse, body: Buffer | undefined): void
}

/** What is known of a request that was begun here, when it is passed on. */
export interface PassingOn {
  readonly ahead?: TokensAhead | undefined
  /** Of a sync: how long it still waits. */
  readonly leftMs?: number
}

/**
 * Has requests answered here while this node stands by, and knows when the last of them is.
 *
 * @param lastAnswersMs how long those may take that are under way at the end; shorter in tests
 */
export function createReadingHere(
  forwarder: Pick<Forwarder, 'keep' | 'pass' | 'free'>,
  lastAnswersMs = STANDBY_LAST_ANSWERS_MS,
) {
  let reading: Reading | undefined
  let servedBy: string | undefined
  let begun = 0
  let ended: (() => void) | undefined
  /** Bodies of requests that may still have to be passed on. */
  const bodies = new WeakMap<IncomingMessage, Buffer>()

  function settle(): void {
    if (reading === undefined && begun === 0) ended?.()
  }

  function read(request: IncomingMessage, response: ServerResponse, body: Buffer | undefined): void {
    begun++
    response.on('close', () => {
      begun--
      settle()
    })
    reading!.routing(request, response, body)
  }

  async function readWithBody(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await forwarder.keep(request, response)
    if (reading === undefined || body === undefined || response.destroyed) {
      await forwarder.pass(request, response, { body })
      return
    }
    bodies.set(request, body)
    response.on('close', () => {
      if (bodies.delete(request)) forwarder.free(request)
    })
    if (reading.isSlidingSync(request)) {
      if (!reading.takeSync(request, response, body)) passOn(request, response)
    } else read(request, response, body)
  }

  async function passInBatch(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await forwarder.keep(request, response)
    let answer: BatchedAnswer | undefined
    try {
      answer = body && (await reading?.inBatch(request, body))
    } catch {
      // Whatever it is, the node that serves says it.
    }
    if (answer === undefined) {
      await forwarder.pass(request, response, { body })
      return
    }
    forwarder.free(request)
    sendBatched(response, answer)
  }

  function passOn(request: IncomingMessage, response: ServerResponse, { ahead, leftMs }: PassingOn = {}): void {
    const kept = bodies.get(request)
    bodies.delete(request)
    const { url: given = '' } = request
    const [url, body] = leftMs === undefined ? [given, kept] : waitingFor(leftMs, given, kept)
    request.url = url
    void forwarder.pass(request, response, { ahead, body })
  }

  return {
    /** Resolves when it has ended, and what was begun is answered; the last answers are not waited for without end. */
    begin(what: Reading): Promise<void> {
      reading = what
      what.servedBy(servedBy)
      return new Promise((resolve) => {
        ended = resolve
      })
    },
    /** @returns false if the request must go to the node that serves */
    take(request: IncomingMessage, response: ServerResponse): boolean {
      if (request.method !== 'GET' && reading?.isBatched(request)) {
        void passInBatch(request, response)
        return true
      }
      if (request.method === 'GET' && reading?.takeSync(request, response)) return true
      if (!reading?.isSlidingSync(request) && !reading?.isAnywhere(request)) return false
      if (request.method === 'GET') read(request, response, undefined)
      else void readWithBody(request, response)
      return true
    },
    passOn,
    /** A thread of the node that serves has connected. @returns false if it was not asked to */
    enter: (socket: Duplex, word: string): boolean => reading?.enter(socket, word) ?? false,
    /** From now on that node serves, or none. */
    passTo(address: string | undefined): void {
      servedBy = address
      reading?.servedBy(address)
    },
    end(): void {
      // What is held must be passed on.
      reading?.servedBy(undefined)
      reading = undefined
      settle()
      setTimeout(() => ended?.(), lastAnswersMs).unref()
    },
  }
}

import type { Readable } from 'node:stream'
import { DrippingError } from './failures.ts'

/** Requests time out after a random share of their time, so that many requests of one moment do not time out at one moment. */
const MAY_TAKE: Share = [0.8, 1]
/** After a random share of the time since its first byte, an answer must have a minimum rate: a slower one would not end in time. */
const MAY_DRIP: Share = [0.2, 0.5]
const LEAST_BYTES_A_SECOND = 100

type Share = readonly [from: number, to: number]
const drawn = (ms: number, [from, to]: Share): number => ms * (from + (to - from) * Math.random())

/** The time limit of one request. */
export interface Deadline {
  readonly signal: AbortSignal
  /** Rejects when the time is over. It is needed beside the signal, which reaches a request only after it has connected. */
  readonly over: Promise<never>
  /** Starts the time again, with another limit. */
  extend(ms: number): void
  met(): void
}

export function startDeadline(ms: number): Deadline {
  const controller = new AbortController()
  const { signal } = controller
  const start = (all: number) => setTimeout(() => giveUp(controller), drawn(all, MAY_TAKE))
  let timer = start(ms)
  const over = new Promise<never>((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  )
  return {
    signal,
    over,
    extend(more) {
      clearTimeout(timer)
      timer = start(more)
    },
    met: () => clearTimeout(timer),
  }
}

/** Aborts without a stack trace: with many unreachable servers, making stack traces took much time. */
function giveUp(controller: AbortController): void {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  controller.abort()
  Error.stackTraceLimit = stackTraceLimit
}

/** Aborts an answer that comes too slowly. @param timeoutMs for the whole answer @returns a function to call with each number of bytes */
export function hurry(body: Readable, timeoutMs: number): (bytes: number) => void {
  const mayDripMs = drawn(timeoutMs, MAY_DRIP)
  let begun: number | undefined
  let size = 0
  return (bytes) => {
    const now = performance.now()
    begun ??= now
    size += bytes
    const ms = now - begun
    const drips = ms > mayDripMs && size * 1_000 < ms * LEAST_BYTES_A_SECOND
    if (drips) body.destroy(new DrippingError())
  }
}

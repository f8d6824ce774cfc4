import type { Readable } from 'node:stream'
import { DrippingError } from './failures.ts'

/** What is asked of many at the same time is not given up at the same time, but after a share of its time that is drawn. */
const MAY_TAKE: Share = [0.8, 1]
/** Counted from its first byte, after which an answer has to come at a rate: what is slower comes to no end in time. */
const MAY_DRIP: Share = [0.2, 0.5]
const LEAST_BYTES_A_SECOND = 100

type Share = readonly [from: number, to: number]
const drawn = (ms: number, [from, to]: Share): number => ms * (from + (to - from) * Math.random())

/** The time that one request has. */
export interface Deadline {
  readonly signal: AbortSignal
  /** Rejects when the time is over: the signal reaches a request only once it is connected. */
  readonly over: Promise<never>
  /** Begins anew, with other bounds. */
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

/** Where many servers do not answer, much time went into noting where in the code each of them was given up. */
function giveUp(controller: AbortController): void {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  controller.abort()
  Error.stackTraceLimit = stackTraceLimit
}

/** Breaks an answer off that drips. @param timeoutMs that it has @returns to be told of what has come of it */
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

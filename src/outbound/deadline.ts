import { DrippingError, TimeoutError } from './failures.ts'

/** Requests time out after a random share of their time, so that many requests of one moment do not time out at one moment. */
const MAY_TAKE: Share = [0.8, 1]
/** After a random share of the time since its first byte, an answer must have a minimum rate: a slower one would not end in time. */
const MAY_DRIP: Share = [0.2, 0.5]
const LEAST_BYTES_A_SECOND = 100

type Share = readonly [from: number, to: number]
const drawn = (ms: number, [from, to]: Share): number => ms * (from + (to - from) * Math.random())

/** The time limit of one request whose answer is read as it comes. */
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
  const start = (all: number) => setTimeout(() => withoutStack(() => controller.abort()), drawn(all, MAY_TAKE))
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

interface Abortable {
  abort(reason: Error): void
}

/** The time limit of one request whose answer is read to its end. */
export class TimeLimit {
  readonly #timer: NodeJS.Timeout
  #reason: Error | undefined
  #request: Abortable | undefined

  /** @param over the time is over; it has an effect on a request only once that has connected */
  constructor(ms: number, over: (reason: Error) => void) {
    this.#timer = setTimeout(
      () => {
        const reason = withoutStack(() => new TimeoutError())
        this.#reason = reason
        over(reason)
        this.#request?.abort(reason)
      },
      drawn(ms, MAY_TAKE),
    )
  }

  get aborted(): boolean {
    return this.#reason !== undefined
  }

  get reason(): Error | undefined {
    return this.#reason
  }

  /** The end of the time breaks this off. */
  breaksOff(request: Abortable): void {
    if (this.#reason) request.abort(this.#reason)
    else this.#request = request
  }

  met(): void {
    clearTimeout(this.#timer)
  }
}

/** With many unreachable servers, making stack traces took much time. */
function withoutStack<T>(make: () => T): T {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  const made = make()
  Error.stackTraceLimit = stackTraceLimit
  return made
}

/** For how long an answer may come slowly. @param timeoutMs for the whole answer */
export const mayDripFor = (timeoutMs: number): number => drawn(timeoutMs, MAY_DRIP)

/** The error of an answer that comes too slowly. @param ms since its first bytes */
export function isTooSlow(ms: number, mayDripMs: number, bytes: number): DrippingError | undefined {
  return ms > mayDripMs && bytes * 1_000 < ms * LEAST_BYTES_A_SECOND ? new DrippingError() : undefined
}

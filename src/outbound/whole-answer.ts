import type { Dispatcher } from 'undici'
import { isTooSlow, mayDripFor, type TimeLimit } from './deadline.ts'
import { TooLargeError } from './failures.ts'
import type { WaitingRequests } from './waiting-requests.ts'

/** An answer that was read to its end. Of a redirect, the body may have been left out. */
export interface Answered {
  readonly status: number
  /** Names in lower case; repeated ones are joined with commas. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

export interface WholeAnswerParts {
  readonly limit: TimeLimit
  readonly timeoutMs: number
  readonly maxBytes: number
  readonly waiting: Pick<WaitingRequests, 'began' | 'ended'>
  /** The answer's header has come, or there will be none. */
  readonly answers: (() => void) | undefined
  resolve(answer: Answered): void
  reject(error: Error): void
}

/** A redirect's body is read up to this size, so that the connection can be used again. */
export const MAX_REDIRECT_BYTES = 65_536
/** So many pieces become one: a piece of one byte, as a server may send all of them, takes a hundred times as much memory. */
const PIECES_JOINED = 512

/** Collects an answer. It takes no stream, no signal and no timer of its own: most answers are one short piece. */
export class WholeAnswer implements Dispatcher.DispatchHandler {
  readonly #parts: WholeAnswerParts
  #isWaiting = true
  #status = 0
  #headers: Record<string, string> = {}
  #chunks: Buffer[] = []
  /** Of the chunks, the last ones that were not joined. */
  #loose = 0
  #size = 0
  #mostBytes: number
  #begunAt: number | undefined
  #mayDripMs: number | undefined

  constructor(parts: WholeAnswerParts) {
    this.#parts = parts
    this.#mostBytes = parts.maxBytes
    parts.waiting.began()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#hasConnection()
    this.#parts.limit.breaksOff(controller)
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    // What comes before the answer itself.
    if (status < 200) return
    this.#parts.answers?.()
    this.#status = status
    this.#headers = flat(headers)
    if (isRedirect(status) && this.#headers.location !== undefined) this.#mostBytes = MAX_REDIRECT_BYTES
    else if (Number(this.#headers['content-length']) > this.#mostBytes) {
      controller.abort(new TooLargeError(this.#mostBytes))
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.length
    if (this.#size > this.#mostBytes) {
      this.#tooLarge(controller)
      return
    }
    this.#chunks.push(chunk)
    this.#loose += 1
    if (this.#loose === PIECES_JOINED) this.#join()
    const now = performance.now()
    if (this.#begunAt === undefined) {
      this.#begunAt = now
      return
    }
    this.#mayDripMs ??= mayDripFor(this.#parts.timeoutMs)
    const error = isTooSlow(now - this.#begunAt, this.#mayDripMs, this.#size)
    if (error) controller.abort(error)
  }

  onResponseEnd(): void {
    this.#parts.resolve({ status: this.#status, headers: this.#headers, body: Buffer.concat(this.#chunks) })
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#hasConnection()
    this.#parts.answers?.()
    this.#parts.reject(error)
  }

  #tooLarge(controller: Dispatcher.DispatchController): void {
    // Nobody reads the body of a redirect.
    if (this.#mostBytes !== this.#parts.maxBytes) {
      this.#parts.resolve({ status: this.#status, headers: this.#headers, body: Buffer.alloc(0) })
    }
    controller.abort(new TooLargeError(this.#mostBytes))
  }

  #join(): void {
    const joined = Buffer.concat(this.#chunks.splice(-this.#loose))
    this.#chunks.push(joined)
    this.#loose = 0
  }

  #hasConnection(): void {
    if (this.#isWaiting) this.#parts.waiting.ended()
    this.#isWaiting = false
  }
}

export const isRedirect = (status: number): boolean =>
  status === 301 || status === 302 || status === 303 || status === 307 || status === 308

export function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const found: Record<string, string> = {}
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    found[name] = typeof value === 'string' ? value : [value ?? ''].flat().join(', ')
  }
  return found
}

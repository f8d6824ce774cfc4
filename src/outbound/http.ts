import { type ConnectionOptions, openConnections } from './connections.ts'
import { startDeadline, TimeLimit } from './deadline.ts'
import { createExchange, type Read, type WholeRequest } from './exchange.ts'
import { type Failure, failureOf, TooLargeError } from './failures.ts'

export type HttpRequest = WholeRequest

export interface HttpAnswer extends Read {
  readonly ok: true
}

/** A request whose answer is read as a stream. `timeoutMs` is for the answer's header alone. */
export interface HttpStreamRequest extends HttpRequest {
  readonly bodyMs: number
}

export interface HttpStream {
  readonly ok: true
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The URL of the answer, after redirects. */
  readonly url: string
  /**
   * Read it to its end, leave the loop early, or call `cancel`. Throws if it breaks off, takes too long or is too long: see `failureOf`.
   */
  readonly body: AsyncIterable<Buffer>
  cancel(): void
}

/** The only way to call other servers. It never throws: an error is part of the result. */
export interface GuardedClient {
  request(request: HttpRequest): Promise<HttpAnswer | Failure>
  stream(request: HttpStreamRequest): Promise<HttpStream | Failure>
  close(): Promise<void>
}

export interface GuardedClientOptions extends ConnectionOptions {
  readonly userAgent?: string
}

export async function createGuardedClient(options: GuardedClientOptions): Promise<GuardedClient> {
  const connections = await openConnections(options)
  const exchange = createExchange(connections, options.userAgent)

  async function answerOf(request: HttpRequest, limit: TimeLimit): Promise<HttpAnswer | Failure> {
    try {
      const { status, headers, body, url, certificate } = await exchange.read(request, limit)
      return { ok: true, status, headers, body, url, certificate }
    } catch (error) {
      return failureOf(error)
    } finally {
      limit.met()
    }
  }

  return {
    request: (request) =>
      new Promise((resolve) => {
        const limit = new TimeLimit(request.timeoutMs, (reason) => resolve(failureOf(reason)))
        void answerOf(request, limit).then(resolve)
      }),
    async stream(request) {
      const deadline = startDeadline(request.timeoutMs)
      try {
        const { status, headers, url, body } = await Promise.race([
          exchange.open(request, deadline.signal),
          deadline.over,
        ])
        deadline.extend(request.bodyMs)
        body.once('close', deadline.met)
        const cancel = () => void body.on('error', () => {}).destroy()
        return { ok: true, status, headers, url, body: upTo(body, request.maxBytes), cancel }
      } catch (error) {
        deadline.met()
        return failureOf(error)
      }
    },
    close: connections.close,
  }
}

async function* upTo(body: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer> {
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    // Leaving the loop closes the connection.
    if (size > maxBytes) throw new TooLargeError(maxBytes)
    yield chunk
  }
}

/** @throws TooLargeError */
export async function readUpTo(body: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of upTo(body, maxBytes)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

import { type ConnectionOptions, openConnections } from './connections.ts'
import { hurry, startDeadline } from './deadline.ts'
import { createExchange, type ExchangeRequest, type Opened } from './exchange.ts'
import { type Failure, failureOf, TooLargeError } from './failures.ts'

export interface HttpRequest extends ExchangeRequest {
  /** The limit for everything together: DNS, connecting, redirects, and the answer's last byte. */
  readonly timeoutMs: number
  /** The limit for the answer's body. */
  readonly maxBytes: number
}

export interface HttpAnswer extends Omit<Opened, 'body'> {
  readonly ok: true
  readonly body: Buffer
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

  async function whole(request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
    const answer = await exchange(request, signal)
    const { body } = answer
    const { maxBytes, timeoutMs } = request
    if (Number(answer.headers['content-length']) > maxBytes) body.destroy(new TooLargeError(maxBytes))
    return { ...answer, ok: true, body: await readUpTo(body, maxBytes, hurry(body, timeoutMs)) }
  }

  return {
    async request(request) {
      const deadline = startDeadline(request.timeoutMs)
      try {
        return await Promise.race([whole(request, deadline.signal), deadline.over])
      } catch (error) {
        return failureOf(error)
      } finally {
        deadline.met()
      }
    },
    async stream(request) {
      const deadline = startDeadline(request.timeoutMs)
      try {
        const { status, headers, url, body } = await Promise.race([exchange(request, deadline.signal), deadline.over])
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

/** @param onRead gets the bytes of each part as it arrives @throws TooLargeError */
export async function readUpTo(
  body: AsyncIterable<Buffer>,
  maxBytes: number,
  onRead?: (bytes: number) => void,
): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of upTo(body, maxBytes)) {
    chunks.push(chunk)
    onRead?.(chunk.length)
  }
  return Buffer.concat(chunks)
}

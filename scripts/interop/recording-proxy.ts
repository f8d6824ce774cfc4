import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Json } from '../../test/support/api.ts'
import type { Certificate } from '../../test/support/certificate.ts'

/** A request that a client sent, and what came of it. */
export interface Recorded {
  readonly id: number
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly token: string | undefined
  readonly body: Json
  /** The body, if it is a form. */
  readonly form: Readonly<Record<string, string>> | undefined
  /** Undefined until it has ended. */
  outcome: 'answered' | 'lost' | 'cancelled' | undefined
  status: number
  answer: Json
}

/** The beginnings and ends of requests, and what happened to the server, in their order. */
export type Moment =
  | { readonly kind: 'start' | 'end'; readonly request: Recorded }
  | { readonly kind: 'event'; readonly name: string }

/** Stands between clients and a server, keeps what they say, and can lose an answer on its way. */
export interface RecordingProxy {
  readonly baseUrl: string
  readonly moments: readonly Moment[]
  /** Something happened beside the requests. */
  note(name: string): void
  /** Breaks the connection in place of the next answer that this is true of. Resolves when it has. */
  lose(isDoomed: (recorded: Recorded) => boolean): Promise<void>
  close(): Promise<void>
}

const TEXT_LIMIT = 8 << 20

/**
 * `target` is asked at each request: the server may have to know the proxy's address before it starts. `tls`: the key and the certificate of
 * `localhost` with which the proxy speaks HTTPS.
 */
export async function startRecordingProxy(target: () => string, tls?: Certificate): Promise<RecordingProxy> {
  const moments: Moment[] = []
  const losses: { isDoomed: (recorded: Recorded) => boolean; done: () => void }[] = []
  let requests = 0

  async function pass(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url: path = '/', headers } = message
    const bytes = await bytesOf(message)
    const token = headers.authorization?.replace(/^Bearer /i, '')
    const isForm = headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true
    const entry: Recorded = {
      ...{ id: requests++, method, path, token, outcome: undefined, status: 0, answer: undefined },
      body: parse(bytes),
      form: isForm ? Object.fromEntries(new URLSearchParams(bytes.toString())) : undefined,
    }
    moments.push({ kind: 'start', request: entry })
    const end = (outcome: NonNullable<Recorded['outcome']>) => {
      if (entry.outcome !== undefined) return
      entry.outcome = outcome
      moments.push({ kind: 'end', request: entry })
    }
    const passed = request(target() + path, { method, headers: { ...headers, 'accept-encoding': 'identity' } })
    response.on('close', () => {
      if (response.writableFinished) return
      end('cancelled')
      passed.destroy()
    })
    passed.on('error', () => {
      end('lost')
      response.destroy()
    })
    passed.on('response', async (answer) => {
      entry.status = answer.statusCode ?? 502
      const content = await bytesOf(answer).catch(() => undefined)
      if (content === undefined) return
      entry.answer = parse(content)
      const loss = losses.findIndex(({ isDoomed }) => isDoomed(entry))
      if (loss >= 0) {
        end('lost')
        response.destroy()
        for (const { done } of losses.splice(loss, 1)) done()
        return
      }
      end('answered')
      response.writeHead(entry.status, answer.headers).end(content)
    })
    passed.end(bytes)
  }

  const take = (message: IncomingMessage, response: ServerResponse) => {
    pass(message, response).catch(() => response.destroy())
  }
  const server = tls === undefined ? createServer(take) : createSecureServer(tls, take)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    baseUrl: `${tls === undefined ? 'http://127.0.0.1' : 'https://localhost'}:${(server.address() as AddressInfo).port}`,
    moments,
    note: (name) => void moments.push({ kind: 'event', name }),
    lose: (isDoomed) => new Promise((done) => losses.push({ isDoomed, done })),
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

async function bytesOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

function parse(bytes: Buffer): Json {
  if (bytes.length === 0 || bytes.length > TEXT_LIMIT) return undefined
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}

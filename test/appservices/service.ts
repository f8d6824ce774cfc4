import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Json } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'

export interface Heard {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly authorization: string | undefined
  readonly text: string
  readonly body: Json
}

/** What to do with a request: a status, a status with a body, or whatever it does itself. */
export type Behaviour = (
  heard: Heard,
  raw: { request: IncomingMessage; response: ServerResponse },
) => number | readonly [number, unknown] | undefined

/** An application service of a test: hears everything and answers as it is told. */
export interface TestService {
  readonly url: string
  readonly heard: Heard[]
  /** What it has taken, in the order of arrival; repeated transactions once. */
  events(): Json[]
  transactions(): Heard[]
  behave(behaviour: Behaviour): void
  /** Waits until it has taken an event with this text or id. */
  until(what: string, fits: (event: Json) => boolean): Promise<Json>
  close(): Promise<void>
}

export const TAKES_ALL: Behaviour = () => [200, {}]

export async function startService(port = 0): Promise<TestService> {
  const heard: Heard[] = []
  const taken: Json[] = []
  const seen = new Set<string>()
  let behaviour = TAKES_ALL
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://here')
    const one: Heard = {
      method: request.method ?? '',
      path: pathname,
      query: searchParams,
      authorization: request.headers.authorization,
      text,
      body: text === '' ? undefined : JSON.parse(text),
    }
    heard.push(one)
    const outcome = behaviour(one, { request, response })
    if (outcome === undefined) return
    const [status, body] = typeof outcome === 'number' ? [outcome, {}] : outcome
    const isNew = !seen.has(pathname)
    if (status === 200 && isNew && pathname.includes('/transactions/')) {
      seen.add(pathname)
      taken.push(...one.body.events)
    }
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    heard,
    events: () => taken,
    transactions: () => heard.filter(({ path }) => path.includes('/transactions/')),
    behave(next) {
      behaviour = next
    },
    until: (what, fits) => waitUntil(what, () => taken.find(fits)),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

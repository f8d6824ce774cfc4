import type { Logger } from 'pino'
import { writeJson } from '../../core/large-integers.ts'
import { routesOf } from '../../core/paths.ts'
import type { Claim } from '../../domain/federation/signed-requests.ts'
import type { RequestSpan, Tracing } from '../../domain/tracing.ts'
import type { Caller } from '../caller.ts'
import { NODE_PEER } from '../client-address.ts'
import { RawReply } from '../endpoint.ts'
import type { Answerer, Operation } from '../operation.ts'
import { parseQuery } from '../query.ts'
import { refusalOf, retryAfter } from '../reply.ts'
import type { Answering, Arrived, Departing, PathParams } from '../request.ts'
import { observeAnswer, type RequestMetrics } from '../server.ts'
import { patternOf } from './anywhere.ts'
import type { BatchedAnswer, BatchedRequest } from './batched.ts'

/** Answers requests that other nodes pass on in batches, as their operations would over HTTP. */
export interface BatchDesk {
  /** From now on, requests to this operation are answered. */
  add(operation: Operation): void
  /** Never rejects. Undefined for a request that has to be passed on whole. */
  answer(asked: BatchedRequest): Promise<BatchedAnswer | undefined>
}

export interface BatchDeskParts {
  readonly log: Logger
  readonly metrics: Pick<RequestMetrics, 'observeRequest'>
  readonly tracing?: Tracing | undefined
  /** Gives each request its id. */
  readonly nextId: () => string
}

interface Route {
  readonly method: string
  readonly pattern: RegExp
  /** Of what the pattern captures. */
  readonly names: readonly string[]
  readonly operation: Operation
  readonly matrix: Answerer
  readonly proto: Answerer
}

interface Found {
  readonly operation: Operation
  readonly answerer: Answerer
  readonly params: PathParams
}

export function createBatchDesk({ log, metrics, tracing, nextId }: BatchDeskParts): BatchDesk {
  const routes: Route[] = []

  function find({ method, url }: BatchedRequest): Found | undefined {
    for (const route of routes) {
      if (route.method !== method) continue
      const values = route.pattern.exec(url)
      if (values === null) continue
      const params = paramsOf(route.names, values)
      if (params === undefined) return undefined
      const answerer = url.startsWith('/_proto/') ? route.proto : route.matrix
      return { operation: route.operation, answerer, params }
    }
    return undefined
  }

  async function reply(arrived: BatchArrival, { operation, answerer }: Found): Promise<BatchedAnswer> {
    try {
      const entering = operation.enter(arrived)
      if (entering !== undefined) await entering
      const answer = await answerer(arrived, arrived)
      if (answer instanceof RawReply) throw new Error('an operation whose requests come in batches gives plain JSON')
      return { status: 200, headers: arrived.answerHeaders, body: writeJson(answer) }
    } catch (error) {
      const refusal = refusalOf(error, arrived, log)
      const seconds = retryAfter(refusal.extra)
      if (seconds !== undefined) arrived.header('retry-after', seconds)
      return { status: refusal.status, headers: arrived.answerHeaders, body: JSON.stringify(refusal) }
    }
  }

  async function answerAs(arrived: BatchArrival, found: Found, span?: RequestSpan): Promise<BatchedAnswer> {
    const begun = performance.now()
    const answer = await reply(arrived, found)
    const { method, path: route } = found.operation.endpoint
    const { status } = answer
    observeAnswer({ log, metrics }, { id: arrived.id, method, route, status, ms: performance.now() - begun })
    span?.end(method, route, status)
    return answer
  }

  return {
    add(operation) {
      const { method, path, options } = operation.endpoint
      const [matrix, proto] = [operation.answererIn('matrix'), operation.answererIn('proto')]
      for (const route of [path, ...(options.also ?? [])].flatMap(routesOf)) {
        const pattern = new RegExp(`^${patternOf(route.path, '([^/?#]+)')}$`)
        const names = [...route.path.matchAll(/:(\w+)(?=\/|$)/g)].map(([, name]) => name!)
        routes.push({ method, pattern, names, operation, matrix, proto })
      }
    },
    async answer(asked) {
      const found = find(asked)
      if (found === undefined || asked.body.length > found.operation.maxBodyBytes) return undefined
      const { path } = found.operation.endpoint
      const arrived = new BatchArrival(asked, { id: nextId(), operation: path, params: found.params })
      if (found.operation.headers !== undefined) Object.assign(arrived.answerHeaders, found.operation.headers)
      const span = tracing?.begin()
      if (span === undefined) return answerAs(arrived, found)
      return new Promise((resolve) => span.within(() => resolve(answerAs(arrived, found, span))))
    },
  }
}

/** Undefined if the path holds a broken percent escape. */
function paramsOf(names: readonly string[], values: readonly string[]): PathParams | undefined {
  const params: Record<string, string> = {}
  try {
    for (let n = 0; n < names.length; n++) params[names[n]!] = decodeURIComponent(values[n + 1]!)
  } catch {
    return undefined
  }
  return params
}

const NO_QUERY = parseQuery('')
/** A node is believed about the addresses of clients. */
const NODE_SOCKET = { remoteAddress: NODE_PEER }
const NO_HEADERS: string[] = []

/** The request, and its answer. Whether the client still waits for that is known where it is. */
class BatchArrival implements Arrived, Answering, Departing {
  readonly id: string
  /** As declared. */
  readonly operation: string
  readonly method: string
  readonly url: string
  readonly headers: Arrived['headers']
  readonly params: PathParams
  readonly body: Buffer
  readonly query = NO_QUERY
  readonly isLate = false
  readonly socket = NODE_SOCKET
  readonly rawHeaders = NO_HEADERS
  readonly closed = false
  readonly writableFinished = false
  readonly answerHeaders: Record<string, string>
  caller: Caller | undefined = undefined
  claim: Claim | undefined = undefined

  constructor(
    { method, url, token, ip, userAgent, body }: BatchedRequest,
    { id, operation, params }: { readonly id: string; readonly operation: string; readonly params: PathParams },
  ) {
    this.id = id
    this.operation = operation
    this.method = method
    this.url = url
    this.headers = { authorization: `Bearer ${token}`, 'user-agent': userAgent, 'x-forwarded-for': ip }
    this.params = params
    this.body = body
    this.answerHeaders = { 'x-request-id': id }
  }

  get raw(): this {
    return this
  }

  header(name: string, value: string | number): void {
    this.answerHeaders[name] = `${value}`
  }

  on(): void {}

  off(): void {}
}

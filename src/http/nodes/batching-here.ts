import type { IncomingMessage, ServerResponse } from 'node:http'
import { isAccessToken } from '../../domain/accounts/access-tokens.ts'
import { MAX_BATCHED_BODY_BYTES, MAX_BATCHED_HEAD_CHARS } from '../../domain/limits/cluster.ts'
import type { AddressReader } from '../client-address.ts'
import { CORS_HEADERS } from '../cors.ts'
import type { Endpoint } from '../endpoint.ts'
import { patternsOf } from './anywhere.ts'
import type { BatchedAnswer } from './batched.ts'
import type { NewsStream } from './news-stream.ts'

/** Passes short requests on together, over the connection to the node that serves. */
export interface BatchingHere {
  /** Whether a request may be passed on so. */
  isBatched(request: IncomingMessage): boolean
  /** Undefined if it has to be passed on whole. */
  inBatch(request: IncomingMessage, body: Buffer): Promise<BatchedAnswer | undefined>
}

const BEARER = /^bearer /i
/** Whether others can be read is said where they would be. What is sent is JSON, whatever type it has. */
const PLAIN_TYPE = /^[\w.+-]+\/[\w.+-]+(?:; ?charset=[\w-]+)?$/

/** @param endpoints those whose requests may travel so */
export function createBatchingHere(parts: {
  readonly endpoints: readonly Endpoint[]
  readonly news: Pick<NewsStream, 'takesBatches' | 'inBatch'>
  readonly addressOf: AddressReader
}): BatchingHere {
  const { news, addressOf } = parts
  const known = patternsOf(parts.endpoints, '$')

  function isUsual({ url = '', headers }: IncomingMessage): boolean {
    const { authorization = '', 'user-agent': userAgent = '', 'content-type': type } = headers
    const isShort = Number(headers['content-length'] ?? Number.NaN) <= MAX_BATCHED_BODY_BYTES
    if (!isShort || headers['transfer-encoding'] !== undefined || headers.expect !== undefined) return false
    if (type !== undefined && !PLAIN_TYPE.test(type)) return false
    if (url.length + authorization.length + userAgent.length > MAX_BATCHED_HEAD_CHARS) return false
    return BEARER.test(authorization) && isAccessToken(tokenIn(authorization))
  }

  return {
    isBatched: (request) =>
      known.get(request.method ?? '')?.test(request.url ?? '') === true && news.takesBatches() && isUsual(request),
    inBatch({ method = '', url = '', headers, socket }, body) {
      return news.inBatch({
        method,
        url,
        token: tokenIn(headers.authorization ?? ''),
        ip: addressOf(socket.remoteAddress, headers['x-forwarded-for']?.toString()),
        userAgent: headers['user-agent'],
        body,
      })
    },
  }
}

const tokenIn = (authorization: string): string => authorization.slice(7).trim()

const OF_EVERY_ANSWER: readonly string[] = [
  ...Object.entries(CORS_HEADERS).flat(),
  'content-type',
  'application/json',
  'content-length',
]

/** Gives a client the answer of the node that serves. */
export function sendBatched(response: ServerResponse, { status, headers, body }: BatchedAnswer): void {
  if (response.destroyed || response.headersSent) return
  const lines = [...OF_EVERY_ANSWER, `${Buffer.byteLength(body)}`]
  for (const [name, value] of Object.entries(headers)) lines.push(name, value)
  response.writeHead(status, lines)
  response.end(body)
}

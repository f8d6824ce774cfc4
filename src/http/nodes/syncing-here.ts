import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { JsonBytes } from '../../core/json-bytes.ts'
import { isAccessToken } from '../../domain/accounts/access-tokens.ts'
import { MAX_ASKED_QUERY_CHARS } from '../../domain/limits/cluster.ts'
import type { QuietSyncs, SyncAnswer } from '../../domain/standby/quiet-syncs.ts'
import type { AskedSync } from '../../domain/standby/sync-desk.ts'
import type { SentAnswers } from '../../domain/sync/sent-answers.ts'
import { decodeStreamToken } from '../../domain/sync/token.ts'
import type { AddressReader } from '../client-address.ts'
import { type Compression, isLarge } from '../compression.ts'
import { CORS_HEADERS } from '../cors.ts'
import { BAD_QUERY, parseQuery, type RawQuery } from '../query.ts'
import { ClientDeparture } from '../request.ts'
import type { RequestMetrics } from '../server.ts'
import { hasBody } from './anywhere.ts'

/** Answers and holds the syncs of clients that go on from a token, where that is enough. */
export interface SyncingHere {
  /** @returns false if the request must go to the node that serves */
  take(request: IncomingMessage, response: ServerResponse): boolean
}

const PATH = /^\/_(?:matrix|proto)\/client\/(?:v3|r0)\/sync\/?\?/
const TIMEOUT = /([?&]timeout=)\d+/
const HEADERS = { ...CORS_HEADERS, 'content-type': 'application/json' }
/** As the endpoint declares it. */
const ROUTE = 'C/sync'

export function createSyncingHere(parts: {
  readonly quiet: Pick<QuietSyncs, 'answer'>
  readonly answers: Pick<SentAnswers, 'mustHaveRoom' | 'send'>
  readonly addressOf: AddressReader
  readonly compression: Compression
  readonly metrics: Pick<RequestMetrics, 'observeRequest'>
  readonly maxTimeoutMs: number
  /** Takes a request that is not answered here. */
  passOn(request: IncomingMessage, response: ServerResponse): void
}): SyncingHere {
  const { quiet, answers, addressOf, compression, metrics, maxTimeoutMs, passOn } = parts
  const prefix = randomBytes(4).toString('hex')
  let count = 0

  function send(request: IncomingMessage, response: ServerResponse, { by, body }: SyncAnswer): void {
    // The client may have left too much unread of earlier answers: then the node that serves says so.
    answers.mustHaveRoom(by)
    count += 1
    const headers = { ...HEADERS, 'x-request-id': `${prefix}-${count.toString(36)}` }
    if (!isLarge(body)) {
      response.writeHead(200, { ...headers, 'content-length': Buffer.byteLength(body) })
      response.end(body)
      return
    }
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const { closed } = answers.send(by, new JsonBytes().bytes(bytes))
    if (closed !== undefined) response.once('close', closed)
    const compressed = compression.compress({ headers: request.headers, raw: request }, bytes)
    response.setHeader('vary', 'accept-encoding')
    if (compressed === undefined) {
      response.writeHead(200, { ...headers, 'content-length': bytes.length })
      response.end(bytes)
    } else {
      response.writeHead(200, { ...headers, 'content-encoding': 'gzip' })
      pipeline(compressed, response, () => {})
    }
  }

  async function answer(
    request: IncomingMessage,
    response: ServerResponse,
    { asked, timeoutMs }: WantedSync,
  ): Promise<void> {
    const begun = performance.now()
    try {
      const found = await quiet.answer(asked, timeoutMs, new ClientDeparture(response))
      if (response.destroyed) return
      if (found !== undefined) {
        send(request, response, found)
        metrics.observeRequest('GET', ROUTE, 200, (performance.now() - begun) / 1000)
        return
      }
    } catch {
      // Whatever it is, the node that serves says it.
    }
    const leftMs = Math.max(0, Math.round(timeoutMs - (performance.now() - begun)))
    request.url = request.url?.replace(TIMEOUT, (_all, name: string) => `${name}${leftMs}`)
    passOn(request, response)
  }

  return {
    take(request, response) {
      const wanted = wantedSync(request, addressOf)
      if (wanted === undefined) return false
      void answer(request, response, { ...wanted, timeoutMs: Math.min(wanted.timeoutMs, maxTimeoutMs) })
      return true
    },
  }
}

interface WantedSync {
  readonly asked: AskedSync
  readonly timeoutMs: number
}

const SWITCH: ReadonlySet<string> = new Set(['', 'true', 'false'])
const PRESENCE: ReadonlySet<string> = new Set(['', 'online', 'offline', 'unavailable'])

/** What a request asks for, if it is a sync that goes on from a token, and everything in it is as it should be. */
function wantedSync(request: IncomingMessage, addressOf: AddressReader): WantedSync | undefined {
  const { method, url = '', headers, socket } = request
  if (method !== 'GET' || url.length > MAX_ASKED_QUERY_CHARS || !PATH.test(url) || hasBody(headers)) return undefined
  const query = parseQuery(url.slice(url.indexOf('?') + 1))
  if (query === BAD_QUERY) return undefined
  const token = tokenOf(request, query)
  const since = one(query, 'since')
  const [timeout, fullState, presence] = [one(query, 'timeout'), one(query, 'full_state'), one(query, 'set_presence')]
  const [filter, after] = [one(query, 'filter'), one(query, 'use_state_after')]
  const unstable = one(query, 'org.matrix.msc4222.use_state_after')
  const isUsual =
    token !== undefined &&
    isAccessToken(token) &&
    since !== undefined &&
    decodeStreamToken(since) !== undefined &&
    timeout !== undefined &&
    /^\d{0,9}$/.test(timeout) &&
    (fullState === '' || fullState === 'false') &&
    PRESENCE.has(presence ?? 'twice') &&
    filter !== undefined &&
    SWITCH.has(after ?? 'twice') &&
    SWITCH.has(unstable ?? 'twice')
  if (!isUsual) return undefined
  const ofUnstable = unstable === 'true' ? ('org.matrix.msc4222.state_after' as const) : undefined
  return {
    asked: {
      token,
      since,
      filter: filter || undefined,
      stateAfter: after === 'true' ? 'state_after' : ofUnstable,
      presence: (presence || 'online') as AskedSync['presence'],
      // Most are not asked about.
      get ip() {
        return addressOf(socket.remoteAddress, headers['x-forwarded-for']?.toString())
      },
      userAgent: headers['user-agent'],
    },
    timeoutMs: Number(timeout),
  }
}

/** The value of a parameter; empty if it is absent, undefined if it is there more than once. */
function one(query: RawQuery, name: string): string | undefined {
  const value = query[name] ?? ''
  return typeof value === 'string' ? value : undefined
}

/** The token as the endpoints read it. */
function tokenOf({ headers }: IncomingMessage, query: RawQuery): string | undefined {
  const header = headers.authorization
  if (header !== undefined && /^bearer /i.test(header)) return header.slice(7).trim()
  return one(query, 'access_token')
}

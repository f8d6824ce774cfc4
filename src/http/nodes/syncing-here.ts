import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { JsonBytes } from '../../core/json-bytes.ts'
import type { QuietSyncs, SyncAnswer } from '../../domain/standby/quiet-syncs.ts'
import type { SentAnswers } from '../../domain/sync/sent-answers.ts'
import type { AddressReader } from '../client-address.ts'
import { type Compression, isLarge } from '../compression.ts'
import { CORS_HEADERS } from '../cors.ts'
import { ClientDeparture } from '../request.ts'
import type { RequestMetrics } from '../server.ts'
import { type AskedHere, askedHere } from './asked-sync.ts'
import type { PassingOn } from './reading-here.ts'

/** Answers and holds the syncs of clients that go on from a token, where that is enough. */
export interface SyncingHere {
  /** @returns false if the request must go to the node that serves */
  take(request: IncomingMessage, response: ServerResponse, body?: Buffer): boolean
}

const HEADERS = { ...CORS_HEADERS, 'content-type': 'application/json' }

export function createSyncingHere(parts: {
  readonly quiet: Pick<QuietSyncs, 'answer'>
  readonly answers: Pick<SentAnswers, 'mustHaveRoom' | 'send'>
  readonly addressOf: AddressReader
  readonly compression: Compression
  readonly metrics: Pick<RequestMetrics, 'observeRequest'>
  readonly maxTimeoutMs: number
  /** Takes a request that is not answered here. */
  passOn(request: IncomingMessage, response: ServerResponse, known: PassingOn): void
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
    { asked, timeoutMs, route }: AskedHere,
  ): Promise<void> {
    const begun = performance.now()
    try {
      const found = await quiet.answer(asked, timeoutMs, new ClientDeparture(response))
      if (response.destroyed) return
      if (found !== undefined) {
        send(request, response, found)
        metrics.observeRequest(request.method ?? '', route, 200, (performance.now() - begun) / 1000)
        return
      }
    } catch {
      // Whatever it is, the node that serves says it.
    }
    const leftMs = Math.max(0, Math.round(timeoutMs - (performance.now() - begun)))
    passOn(request, response, { leftMs })
  }

  return {
    take(request, response, body) {
      const wanted = askedHere(request, body, addressOf)
      if (wanted === undefined) return false
      void answer(request, response, { ...wanted, timeoutMs: Math.min(wanted.timeoutMs, maxTimeoutMs) })
      return true
    },
  }
}

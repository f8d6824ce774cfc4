import { Agent, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import { pipeline } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { nodeProof } from '../../core/signing/node-proof.ts'
import {
  FORWARD_PATIENCE_MS,
  FORWARD_RETRY_MS,
  MAX_KEPT_BODY_BYTES,
  MAX_KEPT_BODY_BYTES_IN_ALL,
} from '../../domain/limits/cluster.ts'
import { UNIX_PEER } from '../client-address.ts'
import { askForBody } from '../expect-continue.ts'
import { discardRest } from '../parting.ts'
import { answer, NODE_PROOF, NOT_SERVING, passedOn } from './node-listener.ts'

/** Passes whole requests on to the node that serves. */
export interface Forwarder {
  /** Resolves when the request is answered, or its client is gone. */
  pass(request: IncomingMessage, response: ServerResponse): Promise<void>
  /** Whether the node that serves is reached, and ready. */
  reaches(): Promise<boolean>
  /** Ends what is on the way: the node that has it serves no more, and may never answer. What can be repeated goes to the next one. */
  giveUp(): void
}

/** `unsent`: nobody got the request. `in doubt`: somebody may have, and gave no answer. */
type Outcome = 'answered' | 'unsent' | 'in doubt'

/** A request with this method does the same when it is repeated; in Matrix a PUT has a transaction id or says what shall be. */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])
/** Headers of one hop. */
const OF_A_HOP = ['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'expect', 'te', 'trailer', NODE_PROOF]
const PROBE_MS = 1_500
const NOT_REACHED = /^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/

/** @param target where the node that serves listens for others, `host:port`; undefined while none does */
export function createForwarder(parts: {
  readonly secret: string
  readonly now: () => number
  readonly target: () => string | undefined
}): Forwarder {
  const agent = new Agent({ keepAlive: true })
  let keptBytes = 0

  /** A short body is kept, so that the request can be repeated. Undefined for one that is passed on as it comes. */
  async function keptBody(request: IncomingMessage): Promise<Buffer | undefined> {
    const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
    const bytes = encoding === undefined ? Number(length ?? 0) : Number.POSITIVE_INFINITY
    if (!(bytes <= MAX_KEPT_BODY_BYTES && keptBytes + bytes <= MAX_KEPT_BODY_BYTES_IN_ALL)) return undefined
    keptBytes += bytes
    try {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      return Buffer.concat(chunks)
    } catch (error) {
      keptBytes -= bytes
      throw error
    }
  }

  function passOnce(
    address: string,
    [request, response]: readonly [IncomingMessage, ServerResponse],
    body: Buffer | undefined,
  ): Promise<Outcome> {
    return new Promise((resolve) => {
      const headers = onwardHeaders(request, body)
      const { method, url = '/' } = request
      headers[NODE_PROOF] = nodeProof(parts.secret, passedOn({ method, url, headers }), parts.now())
      const out = send({ ...placeOf(address), method, path: url, headers, agent })
      const clientGone = (): void => {
        out.destroy()
        resolve('answered')
      }
      response.once('close', clientGone)
      const end = (outcome: Outcome): void => {
        response.off('close', clientGone)
        resolve(outcome)
      }
      out.on('error', ({ code = '' }: NodeJS.ErrnoException) => end(NOT_REACHED.test(code) ? 'unsent' : 'in doubt'))
      out.once('response', (incoming) => {
        if (incoming.headers[NOT_SERVING] !== undefined) {
          incoming.resume()
          end('unsent')
          return
        }
        // An answer may come before the node has read the whole body.
        request.unpipe(out)
        const parting = discardRest(request) ? ['connection', 'close'] : []
        response.writeHead(incoming.statusCode ?? 502, [...answerHeaders(incoming), ...parting])
        pipeline(incoming, response, () => end('answered'))
      })
      if (body === undefined) {
        // The node may refuse it by its headers, before any of the body comes.
        out.flushHeaders()
        whenConnected(out, () => request.pipe(out))
      } else out.end(body)
    })
  }

  async function passUntilAnswered(
    request: IncomingMessage,
    response: ServerResponse,
    body: Buffer | undefined,
  ): Promise<boolean> {
    const until = performance.now() + FORWARD_PATIENCE_MS
    const mayRepeat = body !== undefined && REPEATABLE.has(request.method ?? '')
    do {
      const address = parts.target()
      const outcome = address === undefined ? 'unsent' : await passOnce(address, [request, response], body)
      if (outcome === 'answered' || response.destroyed || response.headersSent) return true
      const isSpent = body === undefined && request.readableDidRead
      if (isSpent || (outcome === 'in doubt' && !mayRepeat)) return false
      await pause(FORWARD_RETRY_MS)
    } while (performance.now() < until)
    return false
  }

  return {
    async pass(request, response) {
      askForBody(request)
      const body = await keptBody(request).catch(() => {
        response.destroy()
        return undefined
      })
      if (response.destroyed) return
      try {
        if (await passUntilAnswered(request, response, body)) return
        discardRest(request)
        answer(response, 503, 'M_UNKNOWN', 'No node serves just now. Send the request again in a few seconds.')
      } finally {
        if (body !== undefined) keptBytes -= Number(request.headers['content-length'] ?? 0)
      }
    },
    reaches: () =>
      new Promise((resolve) => {
        const address = parts.target()
        if (address === undefined) return resolve(false)
        const url = '/health/ready'
        const proof = nodeProof(parts.secret, passedOn({ method: 'GET', url, headers: {} }), parts.now())
        const asked = send({ ...placeOf(address), path: url, headers: { [NODE_PROOF]: proof }, timeout: PROBE_MS })
        asked.once('timeout', () => asked.destroy())
        asked.once('error', () => resolve(false))
        asked.once('response', (incoming) => {
          incoming.resume()
          resolve(incoming.statusCode === 200)
        })
        asked.end()
      }),
    giveUp: () => agent.destroy(),
  }
}

function placeOf(address: string): { readonly host: string; readonly port: string } {
  const { hostname, port } = new URL(`http://${address}`)
  // An IPv6 address has brackets in a URL only.
  return { host: hostname.replace(/^\[|\]$/g, ''), port }
}

function whenConnected(out: ReturnType<typeof send>, begin: () => void): void {
  out.once('socket', (socket) => {
    if (socket.connecting) socket.once('connect', begin)
    else begin()
  })
}

/** The headers of the request, with the address that it came from as a proxy says it. */
function onwardHeaders(
  request: IncomingMessage,
  body: Buffer | undefined,
): Record<string, string | string[] | undefined> {
  const headers: IncomingHttpHeaders = { ...request.headers }
  for (const name of OF_A_HOP) delete headers[name]
  const { remoteAddress } = request.socket
  const came = headers['x-forwarded-for']?.toString()
  if (remoteAddress !== undefined && remoteAddress !== UNIX_PEER)
    headers['x-forwarded-for'] = came === undefined ? remoteAddress : `${came}, ${remoteAddress}`
  if (body !== undefined && body.length > 0) headers['content-length'] = `${body.length}`
  return headers
}

function answerHeaders({ rawHeaders }: IncomingMessage): string[] {
  const kept: string[] = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (!OF_A_HOP.includes(rawHeaders[at]!.toLowerCase())) kept.push(rawHeaders[at]!, rawHeaders[at + 1]!)
  }
  return kept
}

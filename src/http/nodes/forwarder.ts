import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { nodeProof, type PassedOn } from '../../core/signing/node-proof.ts'
import { FORWARD_PATIENCE_MS } from '../../domain/limits/cluster.ts'
import { UNIX_PEER } from '../client-address.ts'
import { askForBody, isBodyWithheld } from '../expect-continue.ts'
import { discardRest } from '../parting.ts'
import { AHEAD, type TokensAhead } from './ahead.ts'
import { createKeptBodies, type KeptBodies, TooSlow } from './kept-bodies.ts'
import { isByProxy, LOCAL_CLIENT, ofLocalClient } from './local-client.ts'
import { answer, NODE_PROOF, NOT_SERVING, passedOn } from './node-listener.ts'
import { createOutgoing } from './outgoing.ts'
import { SYNC, waitingFor } from './patience.ts'
import { placeOf } from './place-of.ts'
import { createProbe } from './probe.ts'
import { createWaitingRoom } from './waiting-room.ts'

/** Passes whole requests on to the node that serves. */
export interface Forwarder {
  /** Resolves when the request is answered, or its client is gone. */
  pass(request: IncomingMessage, response: ServerResponse, known?: KnownOfRequest): Promise<void>
  /** Reads the body, as `pass` would. Undefined for one that must be passed on as it comes, and if the request has been refused. */
  keep(request: IncomingMessage, response: ServerResponse): Promise<Buffer | undefined>
  /** Frees a body that was kept and is not passed on. */
  free(request: IncomingMessage): void
  /** Whether the node that serves is reached, and ready. */
  reaches(): Promise<boolean>
  /** How many requests are being passed on, or wait for that. */
  passing(): number
  /** Ends what is on the way: the node that has it serves no more, and may never answer. What can be repeated goes to the next one. */
  giveUp(): void
  /** The same, but for answers that are on their way from a node that gave its place back in peace. */
  turnAway(): void
  /** This process stops. What waits for news is asked for again without waiting, and nothing waits for a node that serves. */
  finish(): void
}

/** What was found out about a request before it is passed on. */
export interface KnownOfRequest {
  /** Its body, if that was kept. */
  readonly body?: Buffer | undefined
  readonly ahead?: TokensAhead | undefined
}

/** `unsent`: nobody got the request. `in doubt`: somebody may have, and gave no answer. `hurried`: it was taken back, and does no harm twice. */
type Outcome = 'answered' | 'unsent' | 'in doubt' | 'hurried'

/** A request with this method does the same when it is repeated; in Matrix a PUT has a transaction id or says what shall be. */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])
/** Headers of one hop. */
const OF_A_HOP = [
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'expect',
  'te',
  'trailer',
  NODE_PROOF,
  AHEAD,
  LOCAL_CLIENT,
]
/** How long a connection may take. */
const CONNECT_MS = 1_500

type Exchange = readonly [request: IncomingMessage, response: ServerResponse, ahead: TokensAhead | undefined]

export interface ForwarderParts {
  readonly secret: string
  readonly now: () => number
  /** Where the node that serves listens for others, `host:port`; undefined while none does. */
  readonly target: () => string | undefined
  /** Whether only this machine reaches this node. */
  readonly isOnlyLocal?: boolean | undefined
  /** The length of a second, for bodies that are kept; shorter in tests. */
  readonly secondMs?: number | undefined
}

export function createForwarder(parts: ForwarderParts): Forwarder {
  const outgoing = createOutgoing()
  let passing = 0
  /** Takes back syncs that are not answered yet. */
  const waiting = new Set<() => void>()
  const untilOneServes = createWaitingRoom()
  const probe = createProbe(parts)
  let isFinishing = false
  const bodies = createKeptBodies(parts.secondMs)

  function passOnce(address: string, [request, response, ahead]: Exchange, kept: Buffer | undefined): Promise<Outcome> {
    return new Promise((resolve) => {
      const { method, url: given = '/' } = request
      const isHurried = isFinishing && SYNC.test(given)
      const [url, body] = isHurried ? waitingFor(0, given, kept) : [given, kept]
      const headers = onwardHeaders(request, body, ahead)
      Object.assign(headers, proofsOf(parts, request, passedOn({ method, url, headers })))
      const { out, heard } = outgoing.send({ ...placeOf(address), method, path: url, headers })
      const clientGone = (): void => {
        out.destroy()
        end('answered')
      }
      response.once('close', clientGone)
      const hurry = (): void => {
        end('hurried')
        out.destroy()
      }
      if (body !== undefined && !isFinishing && SYNC.test(url)) waiting.add(hurry)
      const end = (outcome: Outcome): void => {
        response.off('close', clientGone)
        waiting.delete(hurry)
        heard()
        resolve(outcome)
      }
      let isConnected = false
      whenConnected(out, () => {
        isConnected = true
      })
      out.once('continue', () => {
        askForBody(request)
        request.pipe(out)
      })
      out.on('error', () => end(isConnected ? 'in doubt' : 'unsent'))
      out.once('response', (incoming) => {
        if (incoming.headers[NOT_SERVING] !== undefined) {
          incoming.resume()
          end('unsent')
          return
        }
        waiting.delete(hurry)
        heard()
        ahead?.granted(Number(incoming.headers[AHEAD] ?? 0))
        bringBack([incoming, out], [request, response], () => end('answered'))
      })
      // The node may refuse it by its headers, before any of the body comes.
      if (body === undefined) out.flushHeaders()
      else out.end(body)
    })
  }

  async function tryOnce(exchange: Exchange, body: Buffer | undefined, mayRepeat: boolean): Promise<Outcome> {
    const address = parts.target()
    if (address === undefined || !(mayRepeat || (await probe.isSure(address)))) return 'unsent'
    const outcome = await passOnce(address, exchange, body)
    if (outcome === 'unsent') probe.doubt(address)
    return outcome
  }

  async function passUntilAnswered(exchange: Exchange, body: Buffer | undefined): Promise<boolean> {
    const [request, response] = exchange
    let until = performance.now() + FORWARD_PATIENCE_MS
    const mayRepeat = body !== undefined && (REPEATABLE.has(request.method ?? '') || SYNC.test(request.url ?? ''))
    while (!response.destroyed) {
      const askedAt = performance.now()
      const outcome = await tryOnce(exchange, body, mayRepeat)
      if (outcome === 'answered' || response.headersSent) return true
      if (outcome === 'hurried') continue
      if ((body === undefined && request.readableDidRead) || (outcome === 'in doubt' && !mayRepeat)) return false
      // A sync is held for longer than this patience: while a node had it, nobody lacked one.
      if (outcome === 'in doubt' && SYNC.test(request.url ?? '')) until += performance.now() - askedAt
      if (isFinishing || performance.now() > until) return false
      await untilOneServes.wait()
    }
    return true
  }

  const keep: Forwarder['keep'] = (request, response) => keepBody(bodies, request, response)
  return {
    keep,
    free: bodies.free,
    async pass(request, response, { body: kept, ahead } = {}) {
      passing++
      const body = kept ?? (await keep(request, response))
      try {
        if (response.destroyed || response.writableEnded) return
        if (await passUntilAnswered([request, response, ahead], body)) return
        discardRest(request)
        answer(response, 503, 'M_UNKNOWN', 'No node serves just now. Send the request again in a few seconds.')
      } finally {
        passing--
        if (body !== undefined) bodies.free(request)
      }
    },
    reaches: probe.isReady,
    passing: () => passing,
    turnAway() {
      outgoing.turnAway()
      untilOneServes.wake()
    },
    giveUp() {
      outgoing.giveUp()
      untilOneServes.wake()
    },
    finish() {
      isFinishing = true
      untilOneServes.wake()
      for (const hurry of [...waiting]) hurry()
    },
  }
}

async function keepBody(
  bodies: KeptBodies,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Buffer | undefined> {
  if (isBodyWithheld(request)) return undefined
  // It was refused, or its client is gone: nothing of it comes any more.
  if (response.destroyed || response.writableEnded) return undefined
  try {
    return await bodies.keep(request)
  } catch (error) {
    if (error instanceof TooSlow) refuseSlow(request, response)
    else response.destroy()
    return undefined
  }
}

function refuseSlow(request: IncomingMessage, response: ServerResponse): void {
  discardRest(request)
  answer(response, 408, 'M_UNKNOWN', 'The request body came too slowly. Try again.')
}

/** Passes an answer on to the client. */
function bringBack(
  [incoming, out]: readonly [IncomingMessage, ClientRequest],
  [request, response]: readonly [IncomingMessage, ServerResponse],
  done: () => void,
): void {
  // It may come before the node has read the whole body.
  request.unpipe(out)
  const parting = discardRest(request) ? ['connection', 'close'] : []
  response.writeHead(incoming.statusCode ?? 502, [...answerHeaders(incoming), ...parting])
  pipeline(incoming, response, () => {
    if (!out.writableFinished) out.destroy()
    done()
  })
}

/** A connection that is not there soon is given up: nobody has got anything then. */
function whenConnected(out: ClientRequest, begin: () => void): void {
  out.once('socket', (socket) => {
    if (!socket.connecting) {
      begin()
      return
    }
    const impatience = setTimeout(() => out.destroy(), CONNECT_MS)
    socket.once('connect', begin)
    for (const end of ['connect', 'close']) socket.once(end, () => clearTimeout(impatience))
  })
}

/** The headers of the request, with the address that it came from as a proxy says it. */
function onwardHeaders(
  request: IncomingMessage,
  body: Buffer | undefined,
  ahead: TokensAhead | undefined,
): Record<string, string | string[] | undefined> {
  const headers: Record<string, string | string[] | undefined> = { ...request.headers }
  const { authorization = [] } = request.headersDistinct
  if (authorization.length > 1) headers.authorization = authorization
  for (const name of OF_A_HOP) delete headers[name]
  const { remoteAddress } = request.socket
  const came = headers['x-forwarded-for']?.toString()
  if (remoteAddress !== undefined && remoteAddress !== UNIX_PEER)
    headers['x-forwarded-for'] = came === undefined ? remoteAddress : `${came}, ${remoteAddress}`
  // The node that serves says whether it wants the body: what is sent to one that has just given its place back cannot be sent again.
  if (body === undefined) headers.expect = '100-continue'
  if (ahead !== undefined) headers[AHEAD] = `${ahead.count}`
  if (body !== undefined && body.length > 0) headers['content-length'] = `${body.length}`
  // For most methods that seldom have a body, Node would send one without saying where it ends.
  if (request.headers['transfer-encoding'] !== undefined) headers['transfer-encoding'] = 'chunked'
  return headers
}

/** That a node passes it on, and whether its client is on the machine of that node. */
function proofsOf(
  { secret, now, isOnlyLocal }: ForwarderParts,
  { headers }: IncomingMessage,
  onward: PassedOn,
): Record<string, string> {
  const proof = nodeProof(secret, onward, now())
  if (!isOnlyLocal || isByProxy(headers)) return { [NODE_PROOF]: proof }
  return { [NODE_PROOF]: proof, [LOCAL_CLIENT]: nodeProof(secret, ofLocalClient(onward), now()) }
}

function answerHeaders({ rawHeaders }: IncomingMessage): string[] {
  const kept: string[] = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (!OF_A_HOP.includes(rawHeaders[at]!.toLowerCase())) kept.push(rawHeaders[at]!, rawHeaders[at + 1]!)
  }
  return kept
}

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { ProtocolError } from '../core/errors.ts'
import type { ArrivalMetrics, BodyRefusal } from '../domain/arrival-metrics.ts'
import { SMALL_BODY_BYTES } from '../domain/limits.ts'
import { networkOf } from '../domain/network.ts'
import { onceAMinute } from '../domain/once-a-minute.ts'
import { addressOf } from './address.ts'
import { ArrivingBodies } from './arriving-bodies.ts'
import { BodyBudget, type HeldBody } from './body-budget.ts'
import type { AddressReader } from './client-address.ts'
import { askForBody } from './expect-continue.ts'
import { BodyBytes } from './growing-bytes.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The longest body to read from this caller; 0 if the body is not read here. */
    maxBodyBytes: number
    heldBody: HeldBody | undefined
    /** Whether the body took so long that the token in the headers must be checked again. */
    isLate: boolean
  }
}

/** Reads the bodies of requests whose headers are accepted, within a memory budget and a time limit. */
export interface BodyIntake {
  /** Refuses a body that will not be read, by its announced length. @throws ProtocolError `M_TOO_LARGE` */
  limit(raw: FastifyRequest, maxBytes: number): void
  /** Records how much may be read. @throws ProtocolError if the announced length is too large */
  expect(raw: FastifyRequest, maxBytes: number, reply: FastifyReply): void
  read(raw: FastifyRequest, done: (error: Error | null, body?: Buffer) => void): void
  /** The body as a stream, for a file whose reader limits it. If the reader stops, the connection stays open. */
  stream(raw: FastifyRequest): AsyncIterable<Buffer>
}

const SECOND_MS = 1_000
const RETRY_AFTER_MS = 3_000

const REFUSALS: Readonly<Record<BodyRefusal, () => ProtocolError>> = {
  'too long': () => new ProtocolError('M_TOO_LARGE', 'The request body is too large.'),
  'too slow': () => new ProtocolError('M_UNKNOWN', 'The request body came too slowly. Try again.', { status: 408 }),
  sender: () => busy('Too many large requests from your address are under way. Wait a little before the next.', 429),
  everybody: () => busy('This server has too many large requests under way. Try again soon.', 503),
}

function busy(error: string, status: number): ProtocolError {
  return new ProtocolError('M_LIMIT_EXCEEDED', error, { status, extra: { retry_after_ms: RETRY_AFTER_MS } })
}

export function createBodyIntake(deps: {
  readonly addressOf: AddressReader
  /** The longest body that any endpoint takes. */
  readonly longest: number
  readonly metrics: ArrivalMetrics
  readonly log: Logger
  /** The length of a second; shorter in tests. */
  readonly secondMs?: number
}): BodyIntake {
  const { metrics, log, secondMs = SECOND_MS } = deps
  const budget = new BodyBudget(deps.longest)
  const arriving = new ArrivingBodies(secondMs)
  metrics.watchBodies(() => budget.bytes, arriving.bytes)
  const tellOf: Readonly<Record<BodyRefusal, (() => void) | undefined>> = {
    'too long': undefined,
    'too slow': onceAMinute((times) => log.warn({ times }, 'bodies of requests came too slowly and were refused')),
    sender: onceAMinute((times) => log.warn({ times }, 'bodies of requests were refused: too many of one address')),
    everybody: onceAMinute((times) => log.warn({ times }, 'bodies of requests were refused: too many under way')),
  }

  function refused(reason: BodyRefusal): ProtocolError {
    metrics.refusedBody(reason)
    tellOf[reason]?.()
    return REFUSALS[reason]()
  }

  const charge = (held: HeldBody | undefined, bytes: number) =>
    held ? budget.takeLong(held, bytes) : budget.takeShort(bytes)

  return {
    limit(raw, maxBytes) {
      if (announcedBytes(raw) > maxBytes) throw refused('too long')
    },
    expect(raw, maxBytes, reply) {
      raw.maxBodyBytes = maxBytes
      const announced = announcedBytes(raw)
      if (announced > maxBytes) throw refused('too long')
      if (announced <= SMALL_BODY_BYTES) return
      const held = { sender: networkOf(addressOf(raw, deps.addressOf)), most: maxBytes, bytes: 0 }
      const refusal = budget.refusalOf(held, announced > 0 ? announced : 0)
      if (refusal !== undefined) throw refused(refusal)
      raw.heldBody = held
      reply.raw.once('close', () => budget.giveLong(held))
    },
    read(raw, done) {
      const { raw: source, maxBodyBytes, heldBody } = raw
      if (maxBodyBytes === 0) {
        done(null)
        return
      }
      askForBody(source)
      const announced = announcedBytes(raw)
      const pieces = new BodyBytes(announced > 0 ? announced : maxBodyBytes, heldBody !== undefined)
      const body = { bytes: 0, seconds: 0, isFile: false, tooSlow: () => end(refused('too slow')) }

      function take(chunk: Buffer): void {
        const after = body.bytes + chunk.length
        const refusal = after > maxBodyBytes ? 'too long' : charge(heldBody, chunk.length)
        if (refusal !== undefined) {
          pieces.discard(chunk)
          end(refused(refusal))
          return
        }
        body.bytes = after
        try {
          pieces.append(chunk)
        } catch {
          // The system gives no more memory; thrown in this listener, the error would end the process.
          end(refused('everybody'))
        }
      }
      function arrived(): void {
        end(null, pieces.taken())
      }
      function brokeOff(): void {
        end(new ProtocolError('M_UNKNOWN', 'The request broke off.', { status: 400 }))
      }
      function end(error: ProtocolError | null, bytes?: Buffer): void {
        source.off('data', take).off('end', arrived).off('error', brokeOff)
        arriving.leave(body)
        if (heldBody === undefined) budget.giveShort(body.bytes)
        else if (error !== null) budget.giveLong(heldBody)
        pieces.free()
        raw.isLate = body.seconds > 0
        done(error, bytes)
      }

      arriving.enter(body)
      source.on('data', take).on('end', arrived).on('error', brokeOff)
    },
    async *stream({ raw: source }) {
      const tooSlow = () => {
        refused('too slow')
        source.socket.destroy()
      }
      const body = { bytes: 0, seconds: 0, isFile: true, tooSlow }
      askForBody(source)
      arriving.enter(body)
      try {
        // By default the end of this loop would destroy the request, and nobody would read its connection any more.
        for await (const chunk of source.iterator({ destroyOnReturn: false })) {
          body.bytes += chunk.length
          yield chunk
        }
      } finally {
        arriving.leave(body)
      }
    },
  }
}

/** How long the body says that it is; not a number where it does not say so. */
function announcedBytes({ headers }: FastifyRequest): number {
  const length = headers['content-length']
  if (length !== undefined) return Number(length)
  return headers['transfer-encoding'] === undefined ? 0 : Number.NaN
}

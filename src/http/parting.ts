import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
import { SMALL_BODY_BYTES } from '../domain/limits.ts'
import { isBodyWithheld } from './expect-continue.ts'
import { releaseBytes } from './release-bytes.ts'

/** How long a client may continue to send a body after the answer: some clients read the answer only after they have sent everything. */
export const LINGER_MS = 5_000

/**
 * Call this before refusing a request whose body has not come in full. It discards the rest of the body. If the rest is long, or may never
 * come, the answer says `Connection: close`, so that the client can read the answer before the connection ends.
 */
export function partWith(reply: FastifyReply): void {
  if (discardRest(reply.request.raw)) reply.header('connection', 'close')
}

/** Discards the rest of a body. @returns whether the answer must say `Connection: close` */
export function discardRest(raw: IncomingMessage): boolean {
  if (raw.complete || raw.destroyed) return false
  // Others may read it still: then the pieces are theirs.
  if (raw.listenerCount('data') + raw.listenerCount('readable') === 0) raw.on('data', releaseBytes)
  raw.resume()
  if (Number(raw.headers['content-length']) <= SMALL_BODY_BYTES && !isBodyWithheld(raw)) return false
  const { socket } = raw
  socket.destroySoon = () => {
    socket.end()
    setTimeout(() => cutOff(socket), LINGER_MS).unref()
  }
  return true
}

/** After an answer: closes the connection unless the rest of the body comes soon. */
export function linger({ request: { raw } }: FastifyReply): void {
  const { socket } = raw
  if (!raw.complete && !socket.destroyed) setTimeout(() => raw.complete || cutOff(socket), LINGER_MS).unref()
}

/** The socket of an injected test request has no `destroy`. */
function cutOff(socket: Partial<Pick<Socket, 'destroy'>>): void {
  socket.destroy?.()
}

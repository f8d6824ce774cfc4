import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
import { SMALL_BODY_BYTES } from '../domain/limits.ts'
import { isBodyWithheld } from './expect-continue.ts'

/** So long a client may go on sending what has been answered already: it may not look at the answer before it has sent everything. */
export const LINGER_MS = 5_000

/**
 * Before a refusal is sent whose request has not come in whole. What is still to come is let by, and where that is much, or may never come, the connection
 * is nobody's afterwards: the client learns it from the answer, and is not cut off before it has read that.
 */
export function partWith(reply: FastifyReply): void {
  const { raw } = reply.request
  if (raw.complete || raw.destroyed) return
  raw.resume()
  if (Number(raw.headers['content-length']) <= SMALL_BODY_BYTES && !isBodyWithheld(raw)) return
  const { socket } = raw
  reply.header('connection', 'close')
  socket.destroySoon = () => {
    socket.end()
    setTimeout(() => cutOff(socket), LINGER_MS).unref()
  }
}

/** After an answer: whoever has not sent the rest soon is cut off. */
export function linger({ request: { raw } }: FastifyReply): void {
  const { socket } = raw
  if (!raw.complete && !socket.destroyed) setTimeout(() => raw.complete || cutOff(socket), LINGER_MS).unref()
}

/** What stands for the socket of an injected request cannot be destroyed. */
function cutOff(socket: Partial<Pick<Socket, 'destroy'>>): void {
  socket.destroy?.()
}

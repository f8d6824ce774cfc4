import type { FastifyRequest } from 'fastify'
import type { AddressReader } from './client-address.ts'

/** The client address of a request; only trusted proxies may name it. */
export function addressOf(raw: FastifyRequest, read: AddressReader): string {
  const forwarded = raw.headers['x-forwarded-for']
  return read(raw.raw.socket.remoteAddress, Array.isArray(forwarded) ? forwarded.join(',') : forwarded)
}

import type { FastifyRequest } from 'fastify'
import type { AddressReader } from './client-address.ts'

/** The address of who sent a request, as far as its proxies are believed. */
export function addressOf(raw: FastifyRequest, read: AddressReader): string {
  const forwarded = raw.headers['x-forwarded-for']
  return read(raw.raw.socket.remoteAddress, Array.isArray(forwarded) ? forwarded.join(',') : forwarded)
}

import type { IncomingHttpHeaders } from 'node:http'
import type { AddressReader } from './client-address.ts'

/** What of a request says where it came from. */
export interface Addressed {
  readonly headers: IncomingHttpHeaders
  readonly raw: { readonly socket: { readonly remoteAddress?: string | undefined } }
}

/** The client address of a request; only trusted proxies may name it. */
export function addressOf(raw: Addressed, read: AddressReader): string {
  const forwarded = raw.headers['x-forwarded-for']
  return read(raw.raw.socket.remoteAddress, Array.isArray(forwarded) ? forwarded.join(',') : forwarded)
}

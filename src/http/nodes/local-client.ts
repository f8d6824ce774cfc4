import type { IncomingHttpHeaders } from 'node:http'
import type { PassedOn } from '../../core/signing/node-proof.ts'

/**
 * In a request that is passed on: its client is on the machine of the node that it came to, and came without a proxy. A proof of its own, because
 * earlier releases would pass on what a client says there.
 */
export const LOCAL_CLIENT = 'x-hearth-local-client'

/** What that proof covers. */
export function ofLocalClient(request: PassedOn): PassedOn {
  return { ...request, method: `local ${request.method}` }
}

/** Whether a request says that it came through a proxy. */
export function isByProxy(headers: IncomingHttpHeaders): boolean {
  return headers['x-forwarded-for'] !== undefined || headers.forwarded !== undefined || headers.via !== undefined
}

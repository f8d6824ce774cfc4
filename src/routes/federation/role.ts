import type { PeerRequester } from '../../domain/federation/requester.ts'
import type { Held } from '../../domain/federation/server-queues.ts'
import { MAX_FEDERATION_BODY_BYTES } from '../../domain/limits.ts'
import type { Services } from '../../domain/services.ts'
import type { EndpointRequest } from '../../http/request.ts'
import { FEDERATION_CODES, type Role } from '../../http/role.ts'

/** The callers of the federation API: servers, by their signature over the request. Requests of one server wait in a queue. */
export function federationRole({ config, federation, rateLimits }: Services): Role<PeerRequester> {
  return {
    codes: FEDERATION_CODES,
    maxBodyBytes: Math.max(MAX_FEDERATION_BODY_BYTES, config.limits.max_body_bytes),
    authenticate: () => undefined,
    claim: (authorizations, addressKey) =>
      federation.signedRequests.claimOf(authorizations, () => rateLimits.take('federation', addressKey())),
    confirm: (claim, request, addressKey) => ({
      server: federation.signedRequests.confirm(claim, request, addressKey),
    }),
    perform: ({ options }, request, handle) => {
      const { requester } = request
      if (requester === undefined || !('server' in requester) || options.outOfTurn) return handle()
      return federation.queues.run(requester.server, heldBy(request), handle)
    },
  }
}

/** Called only if a request has to wait. */
function heldBy(request: EndpointRequest): Held {
  return {
    get bytes() {
      return request.bodyBytes
    },
    get signal() {
      return request.signal
    },
  }
}

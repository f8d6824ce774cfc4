import type { JsonObject } from '../core/json.ts'
import type { Federation } from './federation.ts'
import { MAX_PEER_ANSWER_BYTES } from './limits.ts'
import { unreachable } from './peer-errors.ts'
import { createPeerEvents, type PeerEvents } from './peer-events.ts'
import { createPeerMemberships, type PeerMemberships } from './peer-memberships.ts'
import { createPeerPolicies, type PeerPolicies } from './peer-policies.ts'
import { createPeerRequests, LONG_MS, objectOf, path, SHORT_MS } from './peer-requests.ts'

/**
 * Requests to other homeservers (server-server API). Every answer is parsed and checked for its shape, and nothing in it is trusted.
 *
 * @throws ProtocolError each: the other server's `errcode`; 502 `M_UNKNOWN` if it cannot be reached or its answer is invalid;
 *   `M_FORBIDDEN` if our operator blocks it
 */
export interface Peers extends PeerMemberships, PeerEvents, PeerPolicies {
  /** The body of the answer to a query. */
  query(of: string, path: string): Promise<JsonObject>
  post(of: string, path: string, body: JsonObject, timeoutMs?: number): Promise<JsonObject>
  /** @param body the transaction as canonical JSON */
  sendTransaction(of: string, txnId: string, body: string): Promise<JsonObject>
}

export function createPeers(federation: Federation): Peers {
  const requests = createPeerRequests(federation)
  const { ask, get, put } = requests
  return {
    ...createPeerMemberships(requests),
    ...createPeerEvents(requests),
    ...createPeerPolicies(federation),
    async query(of, where) {
      return objectOf(of, await get(of, `federation/v1/${where}`))
    },
    async post(of, where, body, timeoutMs = SHORT_MS) {
      const limits = { timeoutMs, maxBytes: MAX_PEER_ANSWER_BYTES }
      return objectOf(of, await ask(of, { method: 'POST', path: `federation/v1/${where}`, body }, limits))
    },
    async sendTransaction(of, txnId, body) {
      const limits = { timeoutMs: LONG_MS, maxBytes: MAX_PEER_ANSWER_BYTES, isPatient: true }
      return objectOf(of, await put(of, path('v1', 'send', txnId), body, limits))
    },
  }
}

/** For a server that sends no requests to others. */
export const NO_PEERS = new Proxy({} as Peers, {
  get: () => async (of: string) => {
    throw unreachable(of, 'this server asks no others')
  },
})

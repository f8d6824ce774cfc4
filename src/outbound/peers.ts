import type { JsonObject } from '../core/json.ts'
import type { Federation } from './federation.ts'
import { MAX_PEER_ANSWER_BYTES } from './limits.ts'
import { unreachable } from './peer-errors.ts'
import { createPeerEvents, type PeerEvents } from './peer-events.ts'
import { createPeerMemberships, type PeerMemberships } from './peer-memberships.ts'
import { createPeerRequests, LONG_MS, objectOf, path, SHORT_MS } from './peer-requests.ts'

/**
 * What is asked of other homeservers (server-server API), each answer read and none of it believed.
 *
 * @throws ProtocolError each: what the other server answers, as its `errcode`; 502 `M_UNKNOWN` when it cannot be asked, or makes no sense;
 * `M_FORBIDDEN` when our operator shuts it out
 */
export interface Peers extends PeerMemberships, PeerEvents {
  /** The body of the answer to a query. */
  query(of: string, path: string): Promise<JsonObject>
  post(of: string, path: string, body: JsonObject, timeoutMs?: number): Promise<JsonObject>
  /** @param body of the transaction, canonical JSON */
  sendTransaction(of: string, txnId: string, body: string): Promise<JsonObject>
}

export function createPeers(federation: Federation): Peers {
  const requests = createPeerRequests(federation)
  const { ask, get, put } = requests
  return {
    ...createPeerMemberships(requests),
    ...createPeerEvents(requests),
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

/** Of a server that asks no others. */
export const NO_PEERS = new Proxy({} as Peers, {
  get: () => async (of: string) => {
    throw unreachable(of, 'this server asks no others')
  },
})

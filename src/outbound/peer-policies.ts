import { ProtocolError } from '../core/errors.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import type { Federation, FederationAnswer } from './federation.ts'
import { MAX_PEER_ANSWER_BYTES } from './limits.ts'
import { refusalOf, unasked } from './peer-errors.ts'
import { objectOf } from './peer-requests.ts'

export interface PeerPolicies {
  /**
   * Has a policy server sign an event (server-server API, `POST policy/v1/sign`). Gives the signatures as it answered them.
   *
   * @param event canonical JSON
   * @throws ProtocolError its refusal, in its own words; otherwise as each request to a server
   */
  signByPolicy(
    of: string,
    event: string,
    options: { readonly isUnstable: boolean; readonly timeoutMs: number },
  ): Promise<JsonObject>
}

const PATH = 'policy/v1/sign'
const UNSTABLE_PATH = 'policy/unstable/org.matrix.msc4284/sign'
const MAX_WORDS = 500

export function createPeerPolicies(federation: Federation): PeerPolicies {
  return {
    async signByPolicy(of, event, { isUnstable, timeoutMs }) {
      const path = isUnstable ? UNSTABLE_PATH : PATH
      const limits = { timeoutMs, maxBytes: MAX_PEER_ANSWER_BYTES }
      const answer = await federation.request(of, { method: 'POST', path, body: event, signed: true, ...limits })
      if (!answer.ok) throw unasked(of, answer)
      if (answer.status >= 200 && answer.status <= 299) return objectOf(of, answer)
      throw inItsWords(refusalOf(of, answer), answer)
    },
  }
}

/** The refusal as the server worded it, if it is one that users may hear. */
function inItsWords(refusal: ProtocolError, { status, body }: FederationAnswer): ProtocolError {
  if (refusal.status !== status || !isObject(body) || typeof body.error !== 'string') return refusal
  return new ProtocolError(refusal.errcode, body.error.slice(0, MAX_WORDS), { status, extra: refusal.extra })
}

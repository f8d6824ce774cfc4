import { isObject, type JsonValue } from '../core/json.ts'
import type { GuardedClient } from './http.ts'

/**
 * The answer of a push gateway. `taken`: the notification was accepted; `rejected` lists push keys that no longer exist, and may name keys
 * that were not sent. `refused`: the gateway answered with an error. `unanswered`: it gave no answer that can be read.
 */
export type GatewayAnswer =
  | { readonly kind: 'taken'; readonly rejected: readonly string[] }
  | { readonly kind: 'refused'; readonly status: number }
  | { readonly kind: 'unanswered'; readonly detail: string }

/** Calls push gateways (push gateway API). */
export interface PushGatewayClient {
  /** Sends a notification as JSON. @param url an https URL, or http to a server of this machine in tests */
  notify(url: string, body: string): Promise<GatewayAnswer>
}

/** The time for everything, up to the last byte of the answer. */
export const PUSH_TIMEOUT_MS = 10_000
/** An answer lists at most the keys that were sent, which is one. */
export const MAX_PUSH_ANSWER_BYTES = 16_384
/** Connections to one gateway. */
export const PUSH_CONNECTIONS = 64
/** Connections to all gateways that stay open: they take a tenth of a megabyte each. More than the requests at a time. */
export const PUSH_CONNECTIONS_OPEN = 256

export function createPushGatewayClient(client: Pick<GuardedClient, 'request'>): PushGatewayClient {
  return {
    async notify(url, body) {
      const answer = await client.request({
        method: 'POST',
        url,
        headers: { 'content-type': 'application/json' },
        body,
        timeoutMs: PUSH_TIMEOUT_MS,
        maxBytes: MAX_PUSH_ANSWER_BYTES,
      })
      if (!answer.ok) return { kind: 'unanswered', detail: answer.detail.slice(0, 500) }
      if (answer.status < 200 || answer.status > 299) return { kind: 'refused', status: answer.status }
      return { kind: 'taken', rejected: rejectedIn(answer.body) }
    },
  }
}

const NONE: readonly string[] = []
/** What nearly all answers are. */
const NONE_REJECTED: ReadonlySet<string> = new Set(['{"rejected":[]}', '{"rejected": []}', '{}'])

/** Tolerant: some gateways answer `{}`. */
function rejectedIn(body: Buffer): readonly string[] {
  const text = body.toString('utf8')
  if (NONE_REJECTED.has(text)) return NONE
  try {
    const read = JSON.parse(text) as JsonValue
    const rejected = isObject(read) ? read.rejected : undefined
    return Array.isArray(rejected) ? rejected.filter((key): key is string => typeof key === 'string') : NONE
  } catch {
    return NONE
  }
}

import type { JsonObject } from '../../core/json.ts'
import type { GuardedClient } from '../http.ts'

/** `unavailable`: there was no answer in time, or one that is none. */
export type AntispamVerdict =
  | { readonly verdict: 'allow' }
  | { readonly verdict: 'refuse'; readonly reason: string | undefined }
  | { readonly verdict: 'unavailable' }

const MAX_REASON_CHARS = 500

/** Asks the operator's antispam service. 2xx allows, 4xx refuses with the `error` of its body; all else is no answer. */
export async function askAntispam(
  client: Pick<GuardedClient, 'request'>,
  question: {
    readonly url: string
    readonly token: string | undefined
    readonly body: JsonObject
    readonly timeoutMs: number
    readonly maxBytes: number
  },
): Promise<AntispamVerdict> {
  const { url, token, body, timeoutMs, maxBytes } = question
  const answer = await client.request({
    method: 'POST',
    url,
    headers: { 'content-type': 'application/json', ...(token !== undefined && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
    timeoutMs,
    maxBytes,
  })
  if (!answer.ok) return { verdict: 'unavailable' }
  if (answer.status >= 200 && answer.status < 300) return { verdict: 'allow' }
  if (answer.status < 400 || answer.status >= 500) return { verdict: 'unavailable' }
  return { verdict: 'refuse', reason: reasonIn(answer.body) }
}

function reasonIn(body: Buffer): string | undefined {
  try {
    const { error } = JSON.parse(body.toString('utf8')) as { error?: unknown }
    return typeof error === 'string' && error !== '' ? error.slice(0, MAX_REASON_CHARS) : undefined
  } catch {
    return undefined
  }
}

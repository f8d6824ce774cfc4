import { ProtocolError } from '../../core/errors.ts'
import type { AppserviceAnswer, AppserviceClient } from '../../outbound/appservice.ts'
import type { Requester } from '../accounts/requester.ts'
import { targetOf } from './delivery.ts'

const PING_MS = 10_000
const MAX_SHOWN_CHARS = 1_000

/**
 * Pings a service at its own request (application service API, "Pinging").
 * @returns the duration in milliseconds
 * @throws ProtocolError `M_FORBIDDEN` if the caller is not that service; `M_URL_NOT_SET`, `M_BAD_STATUS`, `M_CONNECTION_FAILED`,
 *   `M_CONNECTION_TIMEOUT`
 */
export async function pingAppservice(
  client: AppserviceClient,
  by: Pick<Requester, 'appservice'>,
  id: string,
  transactionId: string | undefined,
): Promise<number> {
  const service = by.appservice
  if (service === undefined || service.id !== id) {
    throw new ProtocolError('M_FORBIDDEN', 'Only an application service itself, by its own token, is pinged.')
  }
  const target = targetOf(service)
  if (target === undefined) throw new ProtocolError('M_URL_NOT_SET', 'The registration has no url.')
  const body = JSON.stringify({ ...(transactionId !== undefined && { transaction_id: transactionId }) })
  const start = performance.now()
  const answer = await client.ask(target, { operation: 'POST A/ping', path: '/ping', body, timeoutMs: PING_MS })
  requireGood(answer)
  return Math.round(performance.now() - start)
}

function requireGood(answer: AppserviceAnswer): void {
  if (answer.kind === 'unanswered') {
    const errcode = answer.isTimeout ? 'M_CONNECTION_TIMEOUT' : 'M_CONNECTION_FAILED'
    throw new ProtocolError(errcode, `The application service cannot be reached: ${answer.detail}`)
  }
  const { status, text } = answer
  if (status === 200) return
  const extra = { status, body: text.slice(0, MAX_SHOWN_CHARS) }
  throw new ProtocolError('M_BAD_STATUS', `The application service answered ${status}.`, { extra })
}

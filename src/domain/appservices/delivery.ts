import type { AppserviceAnswer, AppserviceClient, AppserviceTarget } from '../../outbound/appservice.ts'
import type { Appservice } from './appservice.ts'
import type { HostedAppservices } from './running-appservices.ts'
import type { Deliver } from './service-queues.ts'

const TRANSACTION_MS = 60_000

/** The URL and token of a service; undefined if it wants no traffic. */
export function targetOf({ registration: { url, hs_token } }: Appservice): AppserviceTarget | undefined {
  return url === null ? undefined : { url, hs_token }
}

/** Why a delivery failed, for the log. */
export function whyNot(answer: AppserviceAnswer): string {
  if (answer.kind === 'unanswered') return answer.detail
  return `it answered ${answer.status}: ${answer.text.slice(0, 200)}`
}

/** `PUT A/transactions/{txnId}`, over HTTP or inside this process. */
export function createDelivery(client: AppserviceClient, hosted: HostedAppservices): Deliver {
  return async (service, txnId, body) => {
    const inside = hosted.deliver(service, txnId, body)
    if (inside !== undefined) return inside
    const target = targetOf(service)
    if (target === undefined) return 'it has no address'
    const path = `/transactions/${encodeURIComponent(txnId)}`
    const answer = await client.tell(target, {
      operation: 'PUT A/transactions/{txnId}',
      path,
      legacyPath: path,
      body,
      timeoutMs: TRANSACTION_MS,
    })
    return answer.kind === 'answered' && answer.status === 200 ? undefined : whyNot(answer)
  }
}

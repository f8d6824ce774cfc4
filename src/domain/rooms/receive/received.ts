import type { EventId } from '../../../core/ids.ts'
import type { Placed } from './placing.ts'

/** The outcome for an event that another server sent. */
export type Received =
  | {
      readonly kind: 'accepted' | 'soft-failed' | 'rejected' | 'known'
      readonly eventId: EventId
      readonly reason?: string
    }
  /** Not stored: it is malformed or not signed, or something that it needs could not be fetched. */
  | { readonly kind: 'dropped'; readonly eventId?: EventId; readonly reason: string }

export function dropped(reason: string, eventId?: EventId): Received {
  return { kind: 'dropped', reason, ...(eventId === undefined ? {} : { eventId }) }
}

export function receivedAs(eventId: EventId, standing: string | undefined, reason?: string): Received {
  const kind = standing === 'soft-failed' || standing === 'rejected' || standing === 'known' ? standing : 'accepted'
  return { kind, eventId, ...(reason === undefined ? {} : { reason }) }
}

/** Waits for all before it throws the first failure. */
export async function settled(placed: readonly Placed[]): Promise<{ event: Placed['event']; outcome: string }[]> {
  const outcomes = await Promise.allSettled(placed.map(({ outcome }) => outcome))
  const failed = outcomes.find((one) => one.status === 'rejected')
  if (failed) throw failed.reason
  return outcomes.map((one, index) => ({
    event: placed[index]!.event,
    outcome: (one as PromiseFulfilledResult<{ kind: string }>).value.kind,
  }))
}

import { Type } from '../../../core/shapes.ts'
import type { DelayedAction } from '../../../domain/delayed-events/delayed-events.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({ action: Type.Unsafe<DelayedAction>({ enum: ['send', 'cancel', 'restart'] }) })

/** As the first drafts of MSC4140 have it; some clients fall back on it. */
export const updateDelayedEvent = endpoint(
  'POST CU/org.matrix.msc4140/delayed_events/{delayId}',
  { auth: 'optional', guests: true, limited: 'other', body: Body },
  async ({ requester, params: { delayId }, body }, { delayedEvents }) => {
    await delayedEvents.act(requester, delayId, body.action)
    return {}
  },
)

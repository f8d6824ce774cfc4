import { ProtocolError } from '../../../core/errors.ts'
import type { DelayedAction } from '../../../domain/delayed-events/delayed-events.ts'
import { endpoint } from '../../../http/endpoint.ts'

const ACTIONS: readonly string[] = ['send', 'cancel', 'restart'] satisfies DelayedAction[]

const isAction = (action: string): action is DelayedAction => ACTIONS.includes(action)

/** Services of calls have no token: the id, which nobody can guess, is enough. */
export const manageDelayedEvent = endpoint(
  'POST C1/delayed_events/{delayId}/{action}',
  {
    auth: 'optional',
    guests: true,
    limited: 'other',
    also: ['CU/org.matrix.msc4140/delayed_events/{delayId}/{action}'],
  },
  async ({ requester, params: { delayId, action } }, { delayedEvents }) => {
    if (!isAction(action)) throw new ProtocolError('M_INVALID_PARAM', `An action is one of ${ACTIONS.join(', ')}.`)
    await delayedEvents.act(requester, delayId, action)
    return {}
  },
)

import { endpoint } from '../../../http/endpoint.ts'

export const getDelayedEvent = endpoint(
  'GET C1/delayed_events/{delayId}',
  { auth: 'user', guests: true, limited: 'other', also: ['CU/org.matrix.msc4140/delayed_events/{delayId}'] },
  ({ requester, params }, { delayedEvents }) => delayedEvents.get(requester, params.delayId),
)

import { endpoint } from '../../../http/endpoint.ts'

/** `scheduled` is the name that clients of earlier drafts look for. */
export const getDelayedEvents = endpoint(
  'GET C1/delayed_events',
  { auth: 'user', guests: true, limited: 'other', also: ['CU/org.matrix.msc4140/delayed_events'] },
  async ({ requester }, { delayedEvents }) => {
    const found = await delayedEvents.list(requester)
    return { delayed_events: found, scheduled: found }
  },
)

import { endpoint } from '../../../http/endpoint.ts'

export const getThreadSubscription = endpoint(
  'GET CU/io.element.msc4306/rooms/{roomId}/thread/{eventId}/subscription',
  { auth: 'user', guests: true, limited: 'other' },
  ({ requester, params: { roomId, eventId } }, { threadSubscriptions }) =>
    threadSubscriptions.get(requester, roomId, eventId),
)

import { endpoint } from '../../../http/endpoint.ts'

export const deleteThreadSubscription = endpoint(
  'DELETE CU/io.element.msc4306/rooms/{roomId}/thread/{eventId}/subscription',
  { auth: 'user', suspended: true, guests: true, limited: 'other' },
  async ({ requester, params: { roomId, eventId } }, { threadSubscriptions }) => {
    await threadSubscriptions.unsubscribe(requester, roomId, eventId)
    return {}
  },
)

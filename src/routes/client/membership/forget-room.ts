import { AnyObject, endpoint } from '../../../http/endpoint.ts'

export const forgetRoom = endpoint(
  'POST C/rooms/{roomId}/forget',
  { auth: 'user', suspended: true, guests: true, limited: 'other', body: AnyObject, bodyOptional: true },
  async ({ requester, params }, { rooms }) => {
    await rooms.forget(requester, params.roomId)
    return {}
  },
)

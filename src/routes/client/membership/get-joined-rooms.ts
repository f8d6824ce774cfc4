import { endpoint } from '../../../http/endpoint.ts'

export const getJoinedRooms = endpoint(
  'GET C/joined_rooms',
  { auth: 'user', anywhere: true, guests: true },
  async ({ requester }, { roomReader }) => ({ joined_rooms: await roomReader.joinedRooms(requester) }),
)

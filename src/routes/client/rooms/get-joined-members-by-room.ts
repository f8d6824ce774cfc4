import { endpoint } from '../../../http/endpoint.ts'

export const getJoinedMembersByRoom = endpoint(
  'GET C/rooms/{roomId}/joined_members',
  { auth: 'user', guests: true },
  ({ requester, params }, { roomReader }) => roomReader.joinedMembers(requester, params.roomId),
)

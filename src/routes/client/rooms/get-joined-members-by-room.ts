import { endpoint, rawReply } from '../../../http/endpoint.ts'

export const getJoinedMembersByRoom = endpoint(
  'GET C/rooms/{roomId}/joined_members',
  { auth: 'user', anywhere: true, guests: true },
  async ({ requester, params }, { roomReader, sync }) =>
    rawReply(await sync.answer(requester, () => roomReader.joinedMembers(requester, params.roomId))),
)

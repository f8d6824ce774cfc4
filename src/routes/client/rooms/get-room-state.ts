import { endpoint, rawReply } from '../../../http/endpoint.ts'

export const getRoomState = endpoint(
  'GET C/rooms/{roomId}/state',
  { auth: 'user', anywhere: true, guests: true },
  async ({ requester, params }, { roomReader, sync }) =>
    rawReply(await sync.answer(requester, () => roomReader.state(requester, params.roomId))),
)

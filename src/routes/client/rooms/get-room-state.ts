import { endpoint, rawReply } from '../../../http/endpoint.ts'

export const getRoomState = endpoint(
  'GET C/rooms/{roomId}/state',
  { auth: 'user', guests: true },
  async ({ requester, params }, { roomReader, sync }) =>
    rawReply(sync.send(requester, await roomReader.state(requester, params.roomId))),
)

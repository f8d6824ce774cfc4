import { endpoint, rawReply } from '../../../http/endpoint.ts'

export const getOneRoomEvent = endpoint(
  'GET C/rooms/{roomId}/event/{eventId}',
  { auth: 'user', anywhere: true, guests: true },
  async ({ requester, params }, { roomReader }) => {
    const body = await roomReader.event(requester, params.roomId, params.eventId)
    return rawReply({ body: body.toBuffer() })
  },
)

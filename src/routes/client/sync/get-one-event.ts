import { endpoint, rawReply } from '../../../http/endpoint.ts'

export const getOneEvent = endpoint(
  'GET C/events/{eventId}',
  { auth: 'user', guests: true },
  async ({ requester, params }, { eventStream }) => {
    const body = await eventStream.event(requester, params.eventId)
    return rawReply({ body: body.toBuffer() })
  },
)

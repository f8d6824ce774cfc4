import { endpoint } from '../../../http/endpoint.ts'
import { pdusReply } from './pdus-reply.ts'

export const getEvent = endpoint(
  'GET F/v1/event/{eventId}',
  { auth: 'server' },
  async ({ requester, params }, { federation, config, clock }) => {
    const event = await federation.roomAnswers.event(requester.server, params.eventId)
    return pdusReply({ pdus: [event] }, { origin: config.server_name, origin_server_ts: clock.now() })
  },
)

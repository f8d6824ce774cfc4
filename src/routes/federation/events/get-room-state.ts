import { endpoint } from '../../../http/endpoint.ts'
import { EventQuery } from './event-query.ts'
import { pdusReply } from './pdus-reply.ts'

export const getRoomState = endpoint(
  'GET F/v1/state/{roomId}',
  { auth: 'server', query: EventQuery },
  async ({ requester, params, query }, { federation }) => {
    const { state, authChain } = await federation.roomAnswers.state(requester.server, params.roomId, query.event_id)
    return pdusReply({ auth_chain: authChain, pdus: state })
  },
)

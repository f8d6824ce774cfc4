import { endpoint } from '../../../http/endpoint.ts'
import { EventQuery } from './event-query.ts'

export const getRoomStateIds = endpoint(
  'GET F/v1/state_ids/{roomId}',
  { auth: 'server', query: EventQuery },
  async ({ requester, params, query }, { federation }) => {
    const { state, authChain } = await federation.roomAnswers.stateIds(requester.server, params.roomId, query.event_id)
    return { auth_chain_ids: authChain, pdu_ids: state }
  },
)

import { endpoint } from '../../../http/endpoint.ts'
import { ViaQuery, viaOf } from '../membership/via-query.ts'

export const getRoomSummary = endpoint(
  'GET C1/room_summary/{roomIdOrAlias}',
  {
    ...{ auth: 'optional', guests: true, limited: 'other', query: ViaQuery },
    // As clients in use call it: by both paths that it had as a proposal.
    also: ['CU/im.nheko.summary/summary/{roomIdOrAlias}', 'CU/im.nheko.summary/rooms/{roomIdOrAlias}/summary'],
  },
  async ({ requester, params, query }, { aliases, spaces }) => {
    const { room_id: roomId, servers } = await aliases.targetOf(params.roomIdOrAlias)
    return spaces.summary(requester, roomId, [...viaOf(query), ...servers])
  },
)

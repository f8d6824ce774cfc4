import { endpoint } from '../../../http/endpoint.ts'
import { ViaQuery, viaOf } from '../membership/via-query.ts'

export const getRoomSummary = endpoint(
  'GET C1/room_summary/{roomIdOrAlias}',
  {
    ...{ auth: 'optional', guests: true, limited: 'other', query: ViaQuery },
    // Clients in use call it by the two paths of its proposal.
    also: ['CU/im.nheko.summary/summary/{roomIdOrAlias}', 'CU/im.nheko.summary/rooms/{roomIdOrAlias}/summary'],
  },
  async ({ requester, params, query }, { aliases, spaces }) => {
    const { room_id: roomId, servers } = await aliases.targetOf(params.roomIdOrAlias)
    return spaces.summary(requester, roomId, [...viaOf(query), ...servers])
  },
)

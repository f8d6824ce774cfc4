import { endpoint } from '../../../http/endpoint.ts'
import { ReasonBody } from './reason-body.ts'
import { ViaQuery, viaOf } from './via-query.ts'

export const knockRoom = endpoint(
  'POST C/knock/{roomIdOrAlias}',
  { auth: 'user', limited: 'join', query: ViaQuery, body: ReasonBody, bodyOptional: true },
  async ({ requester, params, query, body }, { aliases, rooms }) => {
    const { room_id: roomId, servers } = await aliases.targetOf(params.roomIdOrAlias)
    await rooms.knock(requester, roomId, { ...body, via: [...viaOf(query), ...servers] })
    return { room_id: roomId }
  },
)

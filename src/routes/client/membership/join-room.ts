import { endpoint } from '../../../http/endpoint.ts'
import { JoinBody, joinDetailsOf } from './reason-body.ts'
import { ViaQuery, viaOf } from './via-query.ts'

export const joinRoom = endpoint(
  'POST C/join/{roomIdOrAlias}',
  { auth: 'user', guests: true, limited: 'join', query: ViaQuery, body: JoinBody, bodyOptional: true },
  async ({ requester, params, query, body, bodyOffence }, { aliases, rooms }) => {
    const { room_id: roomId, servers } = await aliases.targetOf(params.roomIdOrAlias)
    await rooms.join(requester, roomId, { ...joinDetailsOf(body, bodyOffence), via: [...viaOf(query), ...servers] })
    return { room_id: roomId }
  },
)

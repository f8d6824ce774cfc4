import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'

const Query = Type.Object({ format: Type.Optional(Type.Union([Type.Literal('content'), Type.Literal('event')])) })

export const getRoomStateWithKey = endpoint(
  'GET C/rooms/{roomId}/state/{eventType}/{stateKey}',
  { auth: 'user', anywhere: true, guests: true, also: ['C/rooms/{roomId}/state/{eventType}'], query: Query },
  async ({ requester, params, query: { format = 'content' } }, { roomReader }) => {
    const { roomId, eventType, stateKey } = params
    const body = await roomReader.stateEvent(requester, roomId, eventType, stateKey, format)
    return rawReply({ body: body.toBuffer() })
  },
)

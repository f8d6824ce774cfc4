import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'

const Query = Type.Object({ limit: Type.Optional(Type.Integer({ minimum: 0 })) })

export const roomInitialSync = endpoint(
  'GET C/rooms/{roomId}/initialSync',
  { auth: 'user', limited: 'other', guests: true, query: Query },
  async ({ requester, params, query }, { roomSnapshots, sync }) =>
    rawReply(await sync.answer(requester, () => roomSnapshots.room(requester, params.roomId, query.limit))),
)

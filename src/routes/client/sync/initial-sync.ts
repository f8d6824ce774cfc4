import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'

const Query = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 0 })),
  archived: Type.Optional(Type.Boolean()),
})

export const initialSync = endpoint(
  'GET C/initialSync',
  { auth: 'user', limited: 'other', guests: true, query: Query },
  async ({ requester, query }, { roomSnapshots, sync }) => {
    const { limit, archived: withLeft = false } = query
    return rawReply(await sync.answer(requester, () => roomSnapshots.all(requester, { limit, withLeft })))
  },
)

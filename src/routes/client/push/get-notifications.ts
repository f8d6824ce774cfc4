import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'

const Query = Type.Object({
  from: Type.Optional(Type.String()),
  limit: Type.Optional(Type.Integer({ minimum: 1 })),
  only: Type.Optional(Type.String()),
})

export const getNotifications = endpoint(
  'GET C/notifications',
  { auth: 'user', limited: 'other', query: Query },
  async ({ requester, query }, { notifications, sync }) => {
    const { from, limit, only } = query
    const list = () => notifications.list(requester, { from, limit, onlyHighlights: only === 'highlight' })
    return rawReply(await sync.answer(requester, list))
  },
)

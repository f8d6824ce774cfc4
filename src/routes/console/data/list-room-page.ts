import { Type } from '../../../core/shapes.ts'
import { checkText } from '../../../domain/text.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { PageQuery, pageOf } from '../../admin/page-query.ts'

const Query = Type.Object({
  from: PageQuery.from,
  limit: PageQuery.limit,
  search: Type.Optional(Type.String()),
  order: Type.Optional(
    Type.Unsafe<'members' | 'events' | 'newest'>({ type: 'string', enum: ['members', 'events', 'newest'] }),
  ),
})

const MAX_SEARCH_CHARS = 512

export const listRoomPage = endpoint(
  'GET /_hearth/admin/v1/rooms',
  { auth: 'admin', query: Query },
  ({ query: { search, order = 'members', ...page } }, { admin }) => {
    checkText('search', search ?? '', MAX_SEARCH_CHARS)
    const { from, limit } = pageOf(page)
    return admin.views.roomPages.list({ search, order, from, limit })
  },
)

import { Type } from '../../../core/shapes.ts'
import { checkText } from '../../../domain/text.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { PageQuery, pageOf } from '../../admin/page-query.ts'

const Query = Type.Object({
  from: PageQuery.from,
  limit: PageQuery.limit,
  search: Type.Optional(Type.String()),
})

const MAX_SEARCH_CHARS = 512

export const listBindings = endpoint(
  'GET /_hearth/admin/v1/identity/bindings',
  { auth: 'admin', recorded: true, query: Query },
  ({ query: { search, ...page } }, { admin }) => {
    checkText('search', search ?? '', MAX_SEARCH_CHARS)
    const { from, limit } = pageOf(page)
    return admin.views.operations.bindings({ search, from, limit })
  },
)

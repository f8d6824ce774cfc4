import { ProtocolError } from '../../../core/errors.ts'
import { Type } from '../../../core/shapes.ts'
import { checkText } from '../../../domain/text.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { PageQuery, pageOf } from '../page-query.ts'

const ORDERS = ['user_id', 'displayname', 'media_length', 'media_count'] as const

const Query = Type.Object({
  ...PageQuery,
  order_by: Type.Optional(Type.Unsafe<(typeof ORDERS)[number]>({ type: 'string', enum: ORDERS })),
  from_ts: Type.Optional(Type.Integer({ minimum: 0 })),
  until_ts: Type.Optional(Type.Integer({ minimum: 0 })),
  search_term: Type.Optional(Type.String({ minLength: 1 })),
})

const MAX_TERM_CHARS = 512

export const listMediaUsage = endpoint(
  'GET /_synapse/admin/v1/statistics/users/media',
  { auth: 'admin', query: Query },
  ({ query }, { media }) => {
    const { order_by: order = 'user_id', search_term: term, from_ts: after, until_ts: until } = query
    checkText('search_term', term ?? '', MAX_TERM_CHARS)
    if (until !== undefined && until <= (after ?? 0)) {
      throw new ProtocolError('M_INVALID_PARAM', "'until_ts' is not later than 'from_ts'.")
    }
    return media.desk.usage({ term, after, until }, order, pageOf(query))
  },
)

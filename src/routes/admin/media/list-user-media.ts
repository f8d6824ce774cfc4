import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { PageQuery, pageOf } from '../page-query.ts'

const ORDERS = [
  'media_id',
  'upload_name',
  'created_ts',
  'last_access_ts',
  'media_length',
  'media_type',
  'quarantined_by',
  'safe_from_quarantine',
] as const

const Query = Type.Object({
  ...PageQuery,
  order_by: Type.Optional(Type.Unsafe<(typeof ORDERS)[number]>({ type: 'string', enum: ORDERS })),
})

export const listUserMedia = endpoint(
  'GET /_synapse/admin/v1/users/{userId}/media',
  { auth: 'admin', recorded: true, query: Query },
  ({ params, query }, { media }) => {
    const { order_by: order = 'created_ts' } = query
    // Newest first, unless the query says otherwise.
    const isNewestFirst = query.order_by === undefined && query.dir === undefined
    return media.desk.listOf(params.userId, order, pageOf({ ...query, ...(isNewestFirst && { dir: 'b' }) }))
  },
)

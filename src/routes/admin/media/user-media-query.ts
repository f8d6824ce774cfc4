import { type Static, Type } from '../../../core/shapes.ts'
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

export const UserMediaQuery = Type.Object({
  ...PageQuery,
  order_by: Type.Optional(Type.Unsafe<(typeof ORDERS)[number]>({ type: 'string', enum: ORDERS })),
})

/** Newest first, unless the query says otherwise. */
export function userMediaPageOf(query: Static<typeof UserMediaQuery>) {
  const { order_by: order = 'created_ts' } = query
  const isNewestFirst = query.order_by === undefined && query.dir === undefined
  return [order, pageOf({ ...query, ...(isNewestFirst && { dir: 'b' }) })] as const
}

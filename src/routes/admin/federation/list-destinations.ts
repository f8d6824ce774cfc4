import { Type } from '../../../core/shapes.ts'
import type { DestinationOrder } from '../../../domain/admin/federation-desk.ts'
import { checkText } from '../../../domain/text.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { PageQuery, pageOf } from '../page-query.ts'

const ORDERS = [
  'destination',
  'retry_last_ts',
  'retry_interval',
  'failure_ts',
  'last_successful_stream_ordering',
] as const satisfies readonly DestinationOrder[]

const Query = Type.Object({
  ...PageQuery,
  order_by: Type.Optional(Type.Unsafe<DestinationOrder>({ type: 'string', enum: ORDERS })),
  destination: Type.Optional(Type.String()),
})

const MAX_TERM_CHARS = 255

export const listDestinations = endpoint(
  'GET /_synapse/admin/v1/federation/destinations',
  { auth: 'admin', query: Query },
  ({ query }, { admin }) => {
    checkText('destination', query.destination ?? '', MAX_TERM_CHARS)
    const { order_by: order = 'destination', destination: term } = query
    return admin.federation.list({ ...pageOf(query), order, term })
  },
)

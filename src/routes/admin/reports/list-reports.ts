import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { PageQuery, pageOf } from '../page-query.ts'

const Query = Type.Object({
  ...PageQuery,
  state: Type.Optional(Type.Unsafe<'open' | 'decided'>({ type: 'string', enum: ['open', 'decided'] })),
  kind: Type.Optional(Type.Unsafe<'event' | 'room' | 'user'>({ type: 'string', enum: ['event', 'room', 'user'] })),
})

/** The inbox: reports of all kinds, the newest first. */
export const listReports = endpoint(
  'GET /_hearth/admin/v1/reports',
  { auth: 'admin', recorded: true, query: Query },
  ({ query }, { admin }) => {
    const { state, kind, dir = 'b' } = query
    const isOpen = state === undefined ? undefined : state === 'open'
    return admin.reportInbox.list({ ...pageOf({ ...query, dir }), isOpen, kind })
  },
)

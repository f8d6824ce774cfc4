import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { PageQuery, pageOf } from '../page-query.ts'

const Query = Type.Object({
  ...PageQuery,
  user_id: Type.Optional(Type.String()),
  room_id: Type.Optional(Type.String()),
  event_sender_user_id: Type.Optional(Type.String()),
  // What the documentation of existing tools calls it.
  sender_user_id: Type.Optional(Type.String()),
})

export const listEventReports = endpoint(
  'GET /_synapse/admin/v1/event_reports',
  { auth: 'admin', recorded: true, query: Query },
  async ({ query }, { admin }) => {
    const { reports, ...rest } = await admin.reports.list('event', {
      ...pageOf({ ...query, dir: query.dir ?? 'b' }),
      reporter: query.user_id,
      roomId: query.room_id,
      targetUser: query.event_sender_user_id ?? query.sender_user_id,
    })
    return { event_reports: reports, ...rest }
  },
)

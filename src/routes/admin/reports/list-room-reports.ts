import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { PageQuery, pageOf } from '../page-query.ts'

const Query = Type.Object({
  ...PageQuery,
  user_id: Type.Optional(Type.String()),
  room_id: Type.Optional(Type.String()),
})

export const listRoomReports = endpoint(
  'GET /_hearth/admin/v1/room_reports',
  { auth: 'admin', recorded: true, query: Query },
  async ({ query }, { admin }) => {
    const { reports, ...rest } = await admin.reports.list('room', {
      ...pageOf({ ...query, dir: query.dir ?? 'b' }),
      reporter: query.user_id,
      roomId: query.room_id,
    })
    return { room_reports: reports, ...rest }
  },
)

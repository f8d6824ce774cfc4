import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { PageQuery, pageOf } from '../page-query.ts'

const Query = Type.Object({
  ...PageQuery,
  user_id: Type.Optional(Type.String()),
  target_user_id: Type.Optional(Type.String()),
})

export const listUserReports = endpoint(
  'GET /_synapse/admin/v1/user_reports',
  { auth: 'admin', recorded: true, query: Query },
  async ({ query }, { admin }) => {
    const { reports, ...rest } = await admin.reports.list('user', {
      ...pageOf({ ...query, dir: query.dir ?? 'b' }),
      reporter: query.user_id,
      targetUser: query.target_user_id,
    })
    return { user_reports: reports, ...rest }
  },
)

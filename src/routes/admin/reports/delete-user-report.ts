import { endpoint } from '../../../http/endpoint.ts'
import { reportIdOf } from './report-id.ts'

export const deleteUserReport = endpoint(
  'DELETE /_synapse/admin/v1/user_reports/{reportId}',
  { auth: 'admin', grave: true },
  async ({ params }, { admin }) => {
    await admin.reports.remove('user', reportIdOf(params.reportId))
    return {}
  },
)

import { endpoint } from '../../../http/endpoint.ts'
import { reportIdOf } from './report-id.ts'

export const getUserReport = endpoint(
  'GET /_synapse/admin/v1/user_reports/{reportId}',
  { auth: 'admin', recorded: true },
  ({ params }, { admin }) => admin.reports.get('user', reportIdOf(params.reportId)),
)

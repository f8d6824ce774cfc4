import { endpoint } from '../../../http/endpoint.ts'
import { reportIdOf } from './report-id.ts'

export const getReport = endpoint(
  'GET /_hearth/admin/v1/reports/{reportId}',
  { auth: 'admin', recorded: true },
  ({ params }, { admin }) => admin.reportInbox.get(reportIdOf(params.reportId)),
)

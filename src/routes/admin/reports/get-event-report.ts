import { endpoint } from '../../../http/endpoint.ts'
import { reportIdOf } from './report-id.ts'

export const getEventReport = endpoint(
  'GET /_synapse/admin/v1/event_reports/{reportId}',
  { auth: 'admin', recorded: true },
  ({ params }, { admin }) => admin.reports.get('event', reportIdOf(params.reportId)),
)

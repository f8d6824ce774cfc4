import { endpoint } from '../../../http/endpoint.ts'
import { reportIdOf } from './report-id.ts'

export const getRoomReport = endpoint(
  'GET /_hearth/admin/v1/room_reports/{reportId}',
  { auth: 'admin', recorded: true },
  ({ params }, { admin }) => admin.reports.get('room', reportIdOf(params.reportId)),
)

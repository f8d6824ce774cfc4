import { endpoint } from '../../../http/endpoint.ts'
import { reportIdOf } from './report-id.ts'

export const deleteEventReport = endpoint(
  'DELETE /_synapse/admin/v1/event_reports/{reportId}',
  { auth: 'admin', grave: true },
  async ({ params }, { admin }) => {
    await admin.reports.remove('event', reportIdOf(params.reportId))
    return {}
  },
)

import { endpoint } from '../../../http/endpoint.ts'
import { reportIdOf } from './report-id.ts'

export const reopenReport = endpoint(
  'POST /_hearth/admin/v1/reports/{reportId}/reopen',
  { auth: 'admin' },
  async ({ params }, { admin }) => {
    await admin.reportInbox.reopen(reportIdOf(params.reportId))
    return {}
  },
)

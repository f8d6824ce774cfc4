import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { reportIdOf } from './report-id.ts'

export const decideReport = endpoint(
  'POST /_hearth/admin/v1/reports/{reportId}/decide',
  { auth: 'admin', body: Type.Object({ decision: Type.String({ minLength: 1 }) }) },
  async ({ requester, params, body }, { admin }) => {
    await admin.reportInbox.decide(requester, reportIdOf(params.reportId), body.decision)
    return {}
  },
)

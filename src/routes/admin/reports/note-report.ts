import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { reportIdOf } from './report-id.ts'

export const noteReport = endpoint(
  'POST /_hearth/admin/v1/reports/{reportId}/notes',
  { auth: 'admin', body: Type.Object({ text: Type.String({ minLength: 1 }) }) },
  async ({ requester, params, body }, { admin }) => {
    await admin.reportInbox.note(requester, reportIdOf(params.reportId), body.text)
    return {}
  },
)

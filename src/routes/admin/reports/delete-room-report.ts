import { endpoint } from '../../../http/endpoint.ts'
import { reportIdOf } from './report-id.ts'

export const deleteRoomReport = endpoint(
  'DELETE /_hearth/admin/v1/room_reports/{reportId}',
  { auth: 'admin', grave: true },
  async ({ params }, { admin }) => {
    await admin.reports.remove('room', reportIdOf(params.reportId))
    return {}
  },
)

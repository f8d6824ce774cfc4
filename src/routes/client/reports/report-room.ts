import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const reportRoom = endpoint(
  'POST C/rooms/{roomId}/report',
  { auth: 'user', suspended: true, limited: 'report', body: Type.Object({ reason: Type.String() }) },
  async ({ requester, params: { roomId }, body: { reason } }, { reports }) => {
    await reports.room(requester, roomId, reason)
    return {}
  },
)

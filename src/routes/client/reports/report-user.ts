import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const reportUser = endpoint(
  'POST C/users/{userId}/report',
  { auth: 'user', suspended: true, limited: 'report', body: Type.Object({ reason: Type.String() }) },
  async ({ requester, params: { userId }, body: { reason } }, { reports }) => {
    await reports.user(requester, userId, reason)
    return {}
  },
)

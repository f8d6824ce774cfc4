import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const reportEvent = endpoint(
  'POST C/rooms/{roomId}/report/{eventId}',
  {
    auth: 'user',
    suspended: true,
    limited: 'report',
    body: Type.Object({ reason: Type.Optional(Type.String()), score: Type.Optional(Type.Integer()) }),
  },
  async ({ requester, params: { roomId, eventId }, body: { reason, score } }, { reports }) => {
    await reports.event(requester, roomId, eventId, { reason, score })
    return {}
  },
)

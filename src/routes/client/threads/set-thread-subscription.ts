import { ProtocolError } from '../../../core/errors.ts'
import { isEventId } from '../../../core/ids.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const setThreadSubscription = endpoint(
  'PUT CU/io.element.msc4306/rooms/{roomId}/thread/{eventId}/subscription',
  {
    auth: 'user',
    suspended: true,
    guests: true,
    limited: 'other',
    // The event for which the client subscribes by itself.
    body: Type.Object({ automatic: Type.Optional(Type.String()) }),
  },
  async ({ requester, params: { roomId, eventId }, body: { automatic } }, { threadSubscriptions }) => {
    if (automatic !== undefined && !isEventId(automatic)) {
      throw new ProtocolError('M_INVALID_PARAM', "'automatic' is no event id.")
    }
    await threadSubscriptions.subscribe(requester, roomId, eventId, automatic)
    return {}
  },
)

import { ProtocolError } from '../../../core/errors.ts'
import { isEventId } from '../../../core/ids.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({
  delete_local_events: Type.Optional(Type.Boolean()),
  purge_up_to_event_id: Type.Optional(Type.String()),
  purge_up_to_ts: Type.Optional(Type.Integer({ minimum: 0 })),
})

export const purgeHistory = endpoint(
  'POST /_synapse/admin/v1/purge_history/{roomId}/{upTo}',
  { auth: 'admin', grave: true, body: Body, bodyOptional: true, also: ['/_synapse/admin/v1/purge_history/{roomId}'] },
  async ({ params, body }, { admin }) => {
    const { delete_local_events: withLocal = false, purge_up_to_event_id: named, purge_up_to_ts: ts } = body
    const eventId = params.upTo || named
    if (eventId === undefined && ts === undefined) {
      throw new ProtocolError(
        'M_BAD_JSON',
        'Name an event in the path or in `purge_up_to_event_id`, or say `purge_up_to_ts`.',
      )
    }
    if (eventId !== undefined && !isEventId(eventId)) {
      throw new ProtocolError('M_INVALID_PARAM', 'The event to purge up to is named by no event id.')
    }
    const point = eventId === undefined ? { ts: ts ?? 0 } : { eventId }
    return { purge_id: await admin.historyPurges.begin(params.roomId, point, withLocal) }
  },
)

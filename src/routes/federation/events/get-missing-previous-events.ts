import type { EventId } from '../../../core/ids.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { pdusReply } from './pdus-reply.ts'

const EventIds = Type.Array(Type.Unsafe<EventId>({ type: 'string', format: 'event-id' }), { maxItems: 1_000 })

const Body = Type.Object({
  earliest_events: EventIds,
  latest_events: EventIds,
  limit: Type.Optional(Type.Integer()),
  min_depth: Type.Optional(Type.Integer()),
})

const DEFAULT_LIMIT = 10

export const getMissingPreviousEvents = endpoint(
  'POST F/v1/get_missing_events/{roomId}',
  { auth: 'server', body: Body },
  async ({ requester, params, body }, { federation }) => {
    const { earliest_events: earliest, latest_events: latest, limit = DEFAULT_LIMIT, min_depth: minDepth = 0 } = body
    const between = { earliest, latest, limit, minDepth }
    return pdusReply({ events: await federation.roomAnswers.missingEvents(requester.server, params.roomId, between) })
  },
)

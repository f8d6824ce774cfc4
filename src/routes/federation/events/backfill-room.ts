import type { EventId } from '../../../core/ids.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { pdusReply } from './pdus-reply.ts'

const Query = Type.Object({
  v: Type.Array(Type.Unsafe<EventId>({ type: 'string', format: 'event-id' }), { minItems: 1 }),
  limit: Type.Integer({ minimum: 0 }),
})

export const backfillRoom = endpoint(
  'GET F/v1/backfill/{roomId}',
  { auth: 'server', query: Query },
  async ({ requester, params, query }, { federation, config, clock }) => {
    const pdus = await federation.roomAnswers.backfill(requester.server, params.roomId, query.v, query.limit)
    return pdusReply({ pdus }, { origin: config.server_name, origin_server_ts: clock.now() })
  },
)

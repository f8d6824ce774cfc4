import { ProtocolError } from '../../../core/errors.ts'
import type { JsonObject } from '../../../core/json.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { DelayedQuery, stickyOf } from '../rooms/send-query.ts'
import { tsOf } from '../rooms/ts-query.ts'

const Body = Type.Object({
  delay_ms: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  state_key: Type.Optional(Type.String({ pattern: '^[^\\u0000]*$' })),
  content: Type.Unsafe<JsonObject>({ type: 'object' }),
})

export const scheduleDelayedEvent = endpoint(
  'PUT C/rooms/{roomId}/delayed_event/{eventType}/{txnId}',
  {
    auth: 'user',
    guests: true,
    limited: 'message',
    also: ['CU/org.matrix.msc4140/rooms/{roomId}/delayed_event/{eventType}/{txnId}'],
    query: DelayedQuery,
    body: Body,
  },
  async ({ requester, params, query, exactBody, bodyOffence, path }, { delayedEvents }) => {
    const { roomId, eventType: type, txnId } = params
    const { content, delay_ms: delayMs, state_key: stateKey } = exactBody
    const sent = { content, offence: bodyOffence, ...tsOf(requester, query), ...stickyOf(query) }
    if (stateKey !== undefined && sent.stickyMs !== undefined) {
      throw new ProtocolError('M_INVALID_PARAM', 'State is not sticky: leave out how long.')
    }
    const wish = { ...sent, roomId, type, stateKey, delayMs, transaction: { txnId, path }, isOldForm: false }
    return { delay_id: await delayedEvents.schedule(requester, wish) }
  },
)

import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'
import { ByKey, presenceOf, SlidingExtensionBodies, SlidingFilters } from './sliding-shapes.ts'

const WISH = {
  timeline_limit: Type.Optional(Type.Integer({ minimum: 0 })),
  required_state: Type.Optional(Type.Array(Type.Array(Type.String(), { minItems: 2, maxItems: 2 }))),
}

const List = Type.Object({
  ...WISH,
  ranges: Type.Optional(Type.Array(Type.Array(Type.Integer()))),
  filters: Type.Optional(SlidingFilters),
})

export const unstableSlidingSync = endpoint(
  'POST CU/org.matrix.simplified_msc3575/sync',
  {
    auth: 'user',
    guests: true,
    suspended: true,
    bodiesRepeat: true,
    query: Type.Object({
      pos: Type.Optional(Type.String()),
      timeout: Type.Optional(Type.Integer({ minimum: 0 })),
      set_presence: Type.Optional(Type.String()),
    }),
    body: Type.Object({
      conn_id: Type.Optional(Type.String()),
      lists: Type.Optional(ByKey(List)),
      room_subscriptions: Type.Optional(ByKey(Type.Object(WISH))),
      extensions: Type.Optional(SlidingExtensionBodies),
    }),
  },
  (request, { config, slidingRequests, slidingSync }) => {
    const { requester, query, body } = request
    const wanted = slidingRequests.unstable(body, {
      pos: query.pos,
      timeoutMs: Math.min(query.timeout ?? 0, config.limits.max_sync_timeout_ms),
      presence: presenceOf(query.set_presence),
      signal: request.signal,
    })
    const answer = slidingSync.sync(requester, wanted)
    return answer instanceof Promise ? answer.then(rawReply) : rawReply(answer)
  },
)

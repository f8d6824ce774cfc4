import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'
import { ByKey, mustBeKeys, presenceOf, SlidingExtensionBodies, SlidingFilters } from './sliding-shapes.ts'

const Pattern = Type.Object({ type: Type.Optional(Type.String()), state_key: Type.Optional(Type.String()) })

const WISH = {
  timeline_limit: Type.Integer({ minimum: 0 }),
  required_state: Type.Object({
    include: Type.Optional(Type.Array(Pattern)),
    exclude: Type.Optional(Type.Array(Pattern)),
    lazy_members: Type.Optional(Type.Boolean()),
  }),
}

const List = Type.Object({
  ...WISH,
  range: Type.Optional(Type.Array(Type.Integer())),
  filters: Type.Optional(SlidingFilters),
})

const Body = Type.Object({
  conn_id: Type.Optional(Type.String()),
  pos: Type.Optional(Type.String()),
  timeout: Type.Optional(Type.Integer({ minimum: 0 })),
  set_presence: Type.Optional(Type.String()),
  lists: Type.Optional(ByKey(List)),
  room_subscriptions: Type.Optional(ByKey(Type.Object(WISH))),
  extensions: Type.Optional(SlidingExtensionBodies),
})

export const slidingSync = endpoint(
  'POST client/v4/sync',
  { auth: 'user', guests: true, suspended: true, bodiesRepeat: true, body: Body },
  (request, { config, slidingRequests, slidingSync }) => {
    const { requester, body } = request
    mustBeKeys(body.lists)
    const wanted = slidingRequests.merged(body, {
      pos: body.pos,
      timeoutMs: Math.min(body.timeout ?? 0, config.limits.max_sync_timeout_ms),
      presence: presenceOf(body.set_presence),
      signal: request.signal,
    })
    const answer = slidingSync.sync(requester, wanted)
    return answer instanceof Promise ? answer.then(rawReply) : rawReply(answer)
  },
)

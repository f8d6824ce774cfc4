import { ProtocolError } from '../../../core/errors.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'
import { ByKey, presenceOf, SlidingExtensionBodies, SlidingFilters } from './sliding-shapes.ts'

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

/** The keys of lists are opaque identifiers. */
const KEY = /^[0-9A-Za-z._~-]{1,255}$/

export const slidingSync = endpoint(
  'POST client/v4/sync',
  { auth: 'user', guests: true, suspended: true, bodiesRepeat: true, body: Body },
  (request, { config, slidingRequests, slidingSync }) => {
    const { requester, body } = request
    const bad = Object.keys(body.lists ?? {}).find((key) => !KEY.test(key))
    if (bad !== undefined)
      throw new ProtocolError('M_INVALID_PARAM', 'The key of a list is 1 to 255 of `a-z A-Z 0-9 . _ ~ -`.')
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

import type { CompiledFilter } from '../../../core/filter.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'

const Query = Type.Object({
  filter: Type.Optional(Type.String()),
  since: Type.Optional(Type.String()),
  full_state: Type.Optional(Type.Boolean()),
  set_presence: Type.Optional(
    Type.Union([Type.Literal('online'), Type.Literal('offline'), Type.Literal('unavailable')]),
  ),
  timeout: Type.Optional(Type.Integer({ minimum: 0 })),
  use_state_after: Type.Optional(Type.Boolean()),
  'org.matrix.msc4222.use_state_after': Type.Optional(Type.Boolean()),
})

const STATE_AFTER = 'state_after'
const UNSTABLE_STATE_AFTER = 'org.matrix.msc4222.state_after'

export const sync = endpoint(
  'GET C/sync',
  { auth: 'user', guests: true, query: Query },
  (request, { config, filters, sync }) => {
    const { requester, query } = request
    const unstable = query['org.matrix.msc4222.use_state_after'] ? UNSTABLE_STATE_AFTER : undefined
    const answerWith = (filter: CompiledFilter) =>
      sync.sync(requester, {
        filter,
        since: query.since,
        fullState: query.full_state ?? false,
        timeoutMs: Math.min(query.timeout ?? 0, config.limits.max_sync_timeout_ms),
        stateAfter: query.use_state_after ? STATE_AFTER : unstable,
        presence: query.set_presence ?? 'online',
        signal: request.signal,
      })
    const filter = filters.ofRequest(requester.userNid, query.filter)
    const answer = filter instanceof Promise ? filter.then(answerWith) : answerWith(filter)
    return answer instanceof Promise ? answer.then(rawReply) : rawReply(answer)
  },
)

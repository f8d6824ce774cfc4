import type { CompiledFilter } from '../../../core/filter.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import type { Requester } from '../../../domain/accounts/requester.ts'
import type { Services } from '../../../domain/services.ts'
import type { SentAnswer } from '../../../domain/sync/sent-answers.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'
import type { EndpointRequest } from '../../../http/request.ts'

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
  { auth: 'user', guests: true, often: true, query: Query },
  (request, services) => {
    const filter = services.filters.ofRequest(request.requester.userNid, request.query.filter)
    const answer =
      filter instanceof Promise
        ? filter.then((compiled) => answerWith(request, services, compiled))
        : answerWith(request, services, filter)
    return answer instanceof Promise ? answer.then(rawReply) : rawReply(answer)
  },
)

function answerWith(
  { requester, query, signal }: EndpointRequest<unknown, Static<typeof Query>, unknown, Requester>,
  { config, sync }: Services,
  filter: CompiledFilter,
): SentAnswer | Promise<SentAnswer> {
  const unstable = query['org.matrix.msc4222.use_state_after'] ? UNSTABLE_STATE_AFTER : undefined
  return sync.sync(requester, {
    filter,
    since: query.since,
    fullState: query.full_state ?? false,
    timeoutMs: Math.min(query.timeout ?? 0, config.limits.max_sync_timeout_ms),
    stateAfter: query.use_state_after ? STATE_AFTER : unstable,
    presence: query.set_presence ?? 'online',
    signal,
  })
}

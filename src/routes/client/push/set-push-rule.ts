import { Type } from '../../../core/shapes.ts'
import { AnyObject, endpoint } from '../../../http/endpoint.ts'
import { PushActions } from './push-actions.ts'

export const setPushRule = endpoint(
  'PUT C/pushrules/global/{kind}/{ruleId}',
  {
    auth: 'user',
    suspended: true,
    limited: 'other',
    query: Type.Object({ before: Type.Optional(Type.String()), after: Type.Optional(Type.String()) }),
    body: Type.Object({
      actions: PushActions,
      conditions: Type.Optional(Type.Array(AnyObject)),
      pattern: Type.Optional(Type.String()),
    }),
  },
  async ({ requester, params, query, body }, { pushRuleEdits }) => {
    await pushRuleEdits.put(requester, params, body, query)
    return {}
  },
)

import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { PushActions } from './push-actions.ts'

export const setPushRuleActions = endpoint(
  'PUT C/pushrules/global/{kind}/{ruleId}/actions',
  { auth: 'user', suspended: true, limited: 'other', body: Type.Object({ actions: PushActions }) },
  async ({ requester, params, body }, { pushRuleEdits }) => {
    await pushRuleEdits.setActions(requester, params, body.actions)
    return {}
  },
)

import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const setPushRuleEnabled = endpoint(
  'PUT C/pushrules/global/{kind}/{ruleId}/enabled',
  { auth: 'user', suspended: true, limited: 'other', body: Type.Object({ enabled: Type.Boolean() }) },
  async ({ requester, params, body }, { pushRuleEdits }) => {
    await pushRuleEdits.setEnabled(requester, params, body.enabled)
    return {}
  },
)

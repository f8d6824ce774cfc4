import { endpoint } from '../../../http/endpoint.ts'

export const getPushRuleActions = endpoint(
  'GET C/pushrules/global/{kind}/{ruleId}/actions',
  { auth: 'user', anywhere: true },
  async ({ requester, params }, { pushRuleEdits }) => ({
    actions: (await pushRuleEdits.get(requester, params)).actions,
  }),
)

import { endpoint } from '../../../http/endpoint.ts'

export const isPushRuleEnabled = endpoint(
  'GET C/pushrules/global/{kind}/{ruleId}/enabled',
  { auth: 'user', anywhere: true },
  async ({ requester, params }, { pushRuleEdits }) => ({
    enabled: (await pushRuleEdits.get(requester, params)).enabled,
  }),
)

import { endpoint } from '../../../http/endpoint.ts'

export const getPushRule = endpoint(
  'GET C/pushrules/global/{kind}/{ruleId}',
  { auth: 'user', anywhere: true },
  ({ requester, params }, { pushRuleEdits }) => pushRuleEdits.get(requester, params),
)

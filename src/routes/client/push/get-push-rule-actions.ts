import { endpoint } from '../../../http/endpoint.ts'
import { pushRuleOf } from './push-rule-of.ts'

export const getPushRuleActions = endpoint(
  'GET C/pushrules/global/{kind}/{ruleId}/actions',
  { auth: 'user' },
  ({ requester, params }) => ({ actions: pushRuleOf(requester.userId, params).actions }),
)

import { endpoint } from '../../../http/endpoint.ts'
import { pushRuleOf } from './push-rule-of.ts'

export const isPushRuleEnabled = endpoint(
  'GET C/pushrules/global/{kind}/{ruleId}/enabled',
  { auth: 'user' },
  ({ requester, params }) => ({ enabled: pushRuleOf(requester.userId, params).enabled }),
)

import { endpoint } from '../../../http/endpoint.ts'
import { pushRuleOf } from './push-rule-of.ts'

export const getPushRule = endpoint(
  'GET C/pushrules/global/{kind}/{ruleId}',
  { auth: 'user' },
  ({ requester, params }) => pushRuleOf(requester.userId, params),
)

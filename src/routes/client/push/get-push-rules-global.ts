import { defaultRuleset } from '../../../core/push-rules.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const getPushRulesGlobal = endpoint('GET C/pushrules/global', { auth: 'user' }, ({ requester }) =>
  defaultRuleset(requester.userId),
)

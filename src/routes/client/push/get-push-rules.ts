import { defaultRuleset } from '../../../core/push-rules.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const getPushRules = endpoint('GET C/pushrules', { auth: 'user' }, ({ requester }) => ({
  global: defaultRuleset(requester.userId),
}))

import { endpoint } from '../../../http/endpoint.ts'

export const getPushRulesGlobal = endpoint('GET C/pushrules/global', { auth: 'user' }, ({ requester }, { pushRules }) =>
  pushRules.ruleset(requester),
)

import { endpoint } from '../../../http/endpoint.ts'

export const getPushRulesGlobal = endpoint(
  'GET C/pushrules/global',
  { auth: 'user', anywhere: true },
  ({ requester }, { pushRules }) => pushRules.ruleset(requester),
)

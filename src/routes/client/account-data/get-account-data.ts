import { defaultRuleset } from '../../../core/push-rules.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { requireOwn } from '../own-user.ts'

export const getAccountData = endpoint(
  'GET C/user/{userId}/account_data/{type}',
  { auth: 'user', guests: true },
  ({ requester, params: { userId, type } }, { accountData }) => {
    requireOwn(requester, userId)
    if (type === 'm.push_rules') return { global: defaultRuleset(userId) }
    return accountData.get(requester.userNid, undefined, type)
  },
)

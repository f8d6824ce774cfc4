import { endpoint } from '../../http/endpoint.ts'
import { requireOwn } from './own-user.ts'

export const getAccountData = endpoint(
  'GET C/user/{userId}/account_data/{type}',
  { auth: 'user', guests: true },
  ({ requester, params }, { accountData }) => {
    requireOwn(requester, params.userId)
    return accountData.get(requester.userNid, undefined, params.type)
  },
)

import { endpoint } from '../../../http/endpoint.ts'
import { requireOwn } from '../own-user.ts'

export const getAccountData = endpoint(
  'GET C/user/{userId}/account_data/{type}',
  { auth: 'user', anywhere: true, guests: true },
  ({ requester, params: { userId, type } }, { accountData }) => {
    requireOwn(requester, userId)
    return accountData.get(requester, undefined, type)
  },
)

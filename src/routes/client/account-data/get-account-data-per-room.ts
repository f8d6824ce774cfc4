import { endpoint } from '../../../http/endpoint.ts'
import { requireOwn } from '../own-user.ts'

export const getAccountDataPerRoom = endpoint(
  'GET C/user/{userId}/rooms/{roomId}/account_data/{type}',
  { auth: 'user', anywhere: true, guests: true },
  ({ requester, params }, { accountData }) => {
    requireOwn(requester, params.userId)
    return accountData.get(requester, params.roomId, params.type)
  },
)

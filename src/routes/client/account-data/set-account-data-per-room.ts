import { AnyObject, endpoint } from '../../../http/endpoint.ts'
import { requireOwn } from '../own-user.ts'

export const setAccountDataPerRoom = endpoint(
  'PUT C/user/{userId}/rooms/{roomId}/account_data/{type}',
  { auth: 'user', suspended: true, guests: true, limited: 'other', body: AnyObject },
  async ({ requester, params, body }, { accountData }) => {
    requireOwn(requester, params.userId)
    await accountData.set(requester.userNid, params.roomId, params.type, body)
    return {}
  },
)

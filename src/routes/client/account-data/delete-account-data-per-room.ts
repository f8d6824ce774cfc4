import { endpoint } from '../../../http/endpoint.ts'
import { requireOwn } from '../own-user.ts'

/** MSC3391. */
export const deleteAccountDataPerRoom = endpoint(
  'DELETE CU/org.matrix.msc3391/user/{userId}/rooms/{roomId}/account_data/{type}',
  { auth: 'user', suspended: true, guests: true, limited: 'other' },
  async ({ requester, params: { userId, roomId, type } }, { accountData }) => {
    requireOwn(requester, userId)
    await accountData.delete(requester.userNid, roomId, type)
    return {}
  },
)

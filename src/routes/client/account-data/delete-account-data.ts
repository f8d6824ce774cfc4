import { endpoint } from '../../../http/endpoint.ts'
import { requireOwn } from '../own-user.ts'

/** MSC3391. */
export const deleteAccountData = endpoint(
  'DELETE CU/org.matrix.msc3391/user/{userId}/account_data/{type}',
  { auth: 'user', suspended: true, guests: true, limited: 'other' },
  async ({ requester, params: { userId, type } }, { accountData }) => {
    requireOwn(requester, userId)
    await accountData.delete(requester.userNid, undefined, type)
    return {}
  },
)

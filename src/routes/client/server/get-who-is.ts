import { ProtocolError } from '../../../core/errors.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const getWhoIs = endpoint(
  'GET C/admin/whois/{userId}',
  { auth: 'user', limited: 'other' },
  async ({ requester, params: { userId } }, { admin }) => {
    if (userId !== requester.userId && !(await admin.operators.isAdmin(requester))) {
      throw new ProtocolError('M_FORBIDDEN', 'Only administrators of this server may see this of other users.')
    }
    return admin.users.whois(userId)
  },
)

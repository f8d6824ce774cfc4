import { ProtocolError } from '../../../core/errors.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const findUserByThreepid = endpoint(
  'GET /_synapse/admin/v1/threepid/{medium}/users/{address}',
  { auth: 'admin', recorded: true },
  async ({ params }, { admin }) => {
    const userId = await admin.users.byThreepid(params.medium, params.address)
    if (userId === undefined) throw new ProtocolError('M_NOT_FOUND', 'No account has this address.')
    return { user_id: userId }
  },
)

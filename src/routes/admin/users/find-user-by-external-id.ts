import { ProtocolError } from '../../../core/errors.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const findUserByExternalId = endpoint(
  'GET /_synapse/admin/v1/auth_providers/{provider}/users/{externalId}',
  { auth: 'admin', recorded: true },
  async ({ params }, { admin }) => {
    const userId = await admin.users.byExternalId(params.provider, params.externalId)
    if (userId === undefined) throw new ProtocolError('M_NOT_FOUND', 'No account is the one of this person.')
    return { user_id: userId }
  },
)

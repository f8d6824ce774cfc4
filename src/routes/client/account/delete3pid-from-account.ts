import { ProtocolError } from '../../../core/errors.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { UnbindBody } from './contact-request.ts'

export const delete3pidFromAccount = endpoint(
  'POST C/account/3pid/delete',
  { auth: 'user', body: UnbindBody },
  async ({ requester, body }, { contacts }) => {
    // With its addresses an account also loses the way back for people who forget their password.
    if (requester.isOauth) throw new ProtocolError('M_FORBIDDEN', 'Remove addresses on your account page.')
    return { id_server_unbind_result: await contacts.remove(requester, body, body.id_server) }
  },
)

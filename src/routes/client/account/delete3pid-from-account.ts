import { endpoint } from '../../../http/endpoint.ts'
import { UnbindBody } from './contact-request.ts'

export const delete3pidFromAccount = endpoint(
  'POST C/account/3pid/delete',
  { auth: 'user', body: UnbindBody },
  async ({ requester, body }, { contacts }) => ({
    id_server_unbind_result: await contacts.remove(requester, body, body.id_server),
  }),
)

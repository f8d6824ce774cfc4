import { endpoint } from '../../../http/endpoint.ts'
import { UnbindBody } from './contact-request.ts'

export const unbind3pidFromAccount = endpoint(
  'POST C/account/3pid/unbind',
  { auth: 'user', limited: 'other', body: UnbindBody, also: ['CU/account/3pid/unbind'] },
  async ({ requester, body }, { contacts }) => ({
    id_server_unbind_result: await contacts.unbind(requester, body, body.id_server),
  }),
)

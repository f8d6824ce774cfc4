import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { Opaque } from '../../identity/validation/token-request.ts'

export const BindBody = Type.Object({
  client_secret: Opaque,
  id_server: Type.String(),
  id_access_token: Type.String({ maxLength: 4_096 }),
  sid: Opaque,
})

export const bind3pid = endpoint(
  'POST C/account/3pid/bind',
  { auth: 'user', limited: 'other', body: BindBody, also: ['CU/account/3pid/bind'] },
  async ({ requester, body }, { contacts }) => {
    const proof = { sid: body.sid, clientSecret: body.client_secret }
    await contacts.bind(requester, body.id_server, body.id_access_token, proof)
    return {}
  },
)

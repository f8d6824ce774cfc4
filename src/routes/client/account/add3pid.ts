import { Type } from '../../../core/shapes.ts'
import { Details, endpoint } from '../../../http/endpoint.ts'
import { ownProof } from '../../../http/uia.ts'
import { Opaque } from '../../identity/validation/token-request.ts'

const Body = Type.Object({ auth: Type.Optional(Details), client_secret: Opaque, sid: Opaque })

export const add3pid = endpoint(
  'POST C/account/3pid/add',
  { auth: 'user', suspended: true, limited: 'other', body: Body, uia: ownProof, also: ['CU/account/3pid/add'] },
  async ({ requester, body }, { contacts }) => {
    await contacts.add(requester, { sid: body.sid, clientSecret: body.client_secret })
    return {}
  },
)

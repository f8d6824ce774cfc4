import { Type } from '../../core/shapes.ts'
import { Details, endpoint } from '../../http/endpoint.ts'
import { ownProof } from '../../http/uia.ts'

const Body = Type.Object({
  auth: Type.Optional(Details),
  id_server: Type.Optional(Type.String()),
  erase: Type.Optional(Type.Boolean()),
})

export const deactivateAccount = endpoint(
  'POST C/account/deactivate',
  { auth: 'user', suspended: true, limited: 'login', body: Body, bodyOptional: true, uia: ownProof },
  async ({ requester, body }, { deactivation }) => {
    const { id_server: idServer, erase = false } = body
    return { id_server_unbind_result: await deactivation.deactivate(requester, { erase, idServer }) }
  },
)

import { ProtocolError } from '../../../core/errors.ts'
import { isUserId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import { Type } from '../../../core/shapes.ts'
import type { EndingUser } from '../../../domain/accounts/deactivation.ts'
import { Details, endpoint } from '../../../http/endpoint.ts'
import { ownProof } from '../../../http/uia.ts'

const Body = Type.Object({
  auth: Type.Optional(Details),
  id_server: Type.Optional(Type.String()),
  erase: Type.Optional(Type.Boolean()),
})

const PASSWORD_STAGE = 'm.login.password'

/** Without a token, the user is the one whose password was right (client-server API, "Deactivating your account"). */
function provenUser({ user_nid: userNid, user_id: userId }: JsonObject = {}): EndingUser {
  if (typeof userNid === 'number' && isUserId(userId)) return { userNid, userId }
  throw new ProtocolError('M_MISSING_TOKEN', 'This needs an access token, or a password.')
}

export const deactivateAccount = endpoint(
  'POST C/account/deactivate',
  {
    auth: 'optional',
    suspended: true,
    limited: 'login',
    body: Body,
    bodyOptional: true,
    async uia(request, services) {
      const { requester, dialect } = request
      if (requester !== undefined) return ownProof({ requester }, services)
      if (dialect === 'proto') throw new ProtocolError('M_MISSING_TOKEN', 'This needs an access token.')
      return [[PASSWORD_STAGE]]
    },
  },
  async ({ requester, body, uia }, { deactivation }) => {
    const { id_server: idServer, erase = false } = body
    const user = requester ?? provenUser(uia?.[PASSWORD_STAGE])
    return { id_server_unbind_result: await deactivation.deactivate(user, { erase, idServer }) }
  },
)

import { ProtocolError } from '../../../core/errors.ts'
import type { UserId } from '../../../core/ids.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import type { InvitedAddress } from '../../../domain/rooms/act/address-invites.ts'
import { endpoint } from '../../../http/endpoint.ts'

/** One path with two operations: the body names a user, or somebody's address. */
const Body = Type.Object({
  user_id: Type.Optional(Type.Unsafe<UserId>({ type: 'string', format: 'user-id' })),
  id_server: Type.Optional(Type.String()),
  id_access_token: Type.Optional(Type.String()),
  medium: Type.Optional(Type.String()),
  address: Type.Optional(Type.String()),
  reason: Type.Optional(Type.String()),
})

function addressIn(body: Static<typeof Body>): InvitedAddress {
  const { id_server, id_access_token, medium, address } = body
  if (medium === undefined && address === undefined) {
    throw new ProtocolError('M_MISSING_PARAM', "Say whom to invite: 'user_id', or 'medium' and 'address'.")
  }
  const named = { id_server, id_access_token, medium, address }
  const missing = Object.entries(named).find(([, value]) => value === undefined)
  if (missing) throw new ProtocolError('M_MISSING_PARAM', `Key '${missing[0]}' is missing.`)
  return named as InvitedAddress
}

export const inviteUser = endpoint(
  'POST C/rooms/{roomId}/invite',
  { auth: 'user', limited: 'invite', body: Body },
  async ({ requester, params: { roomId }, body }, { rooms, addressInvites }) => {
    const { user_id: target, reason } = body
    const details = reason === undefined ? {} : { reason }
    if (target !== undefined) await rooms.invite(requester, roomId, target, details)
    else await addressInvites.invite(requester, roomId, addressIn(body), details)
    return {}
  },
)

import { ProtocolError } from '../../../core/errors.ts'
import { signedInviteOf } from '../../../core/event/content.ts'
import { serverOf, type UserId } from '../../../core/ids.ts'
import { Type } from '../../../core/shapes.ts'
import { shutOut } from '../../../domain/federation/server-access.ts'
import { noInvitation } from '../../../domain/rooms/act/third-party-invites.ts'
import { AnyObject, endpoint } from '../../../http/endpoint.ts'

const UserIdShape = Type.Unsafe<UserId>({ type: 'string', format: 'user-id' })

const Body = Type.Object({
  type: Type.Literal('m.room.member'),
  room_id: Type.String(),
  sender: UserIdShape,
  state_key: UserIdShape,
  content: AnyObject,
})

export const exchangeThirdPartyInvite = endpoint(
  'PUT F/v1/exchange_third_party_invite/{roomId}',
  { auth: 'server', body: Body },
  async ({ requester, params: { roomId }, body }, { thirdPartyInvites, federation, config }) => {
    const { sender, state_key: target, content, room_id: stated } = body
    const signed = signedInviteOf(content)
    if (stated !== roomId || content.membership !== 'invite' || signed === undefined || signed.mxid !== target) {
      throw new ProtocolError(
        'M_INVALID_PARAM',
        'The event is no invitation to this room that was signed for its user.',
      )
    }
    if (serverOf(target) !== requester.server || serverOf(sender) !== config.server_name) {
      throw new ProtocolError('M_FORBIDDEN', 'Servers exchange invitations of our users for theirs.')
    }
    const standing = await federation.standing(requester.server, roomId)
    if (standing !== 'allowed') throw standing === 'refused' ? shutOut(requester.server) : noInvitation()
    await thirdPartyInvites.claim({ roomId, sender, target, signed })
    return {}
  },
)

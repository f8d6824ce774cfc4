import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'

const MembershipName = Type.Optional(
  Type.Union([
    Type.Literal('join'),
    Type.Literal('invite'),
    Type.Literal('knock'),
    Type.Literal('leave'),
    Type.Literal('ban'),
  ]),
)

const Query = Type.Object({
  at: Type.Optional(Type.String()),
  membership: MembershipName,
  not_membership: MembershipName,
})

export const getMembersByRoom = endpoint(
  'GET C/rooms/{roomId}/members',
  { auth: 'user', anywhere: true, guests: true, query: Query },
  async ({ requester, params, query }, { roomReader, sync }) => {
    const { at, membership, not_membership: notMembership } = query
    const members = () => roomReader.members(requester, params.roomId, { at, membership, notMembership })
    return rawReply(await sync.answer(requester, members))
  },
)

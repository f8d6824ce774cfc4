import type { JsonValue } from '../../../core/json.ts'
import { Type } from '../../../core/shapes.ts'
import { AnyObject, endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({
  room_version: Type.String(),
  event: AnyObject,
  invite_room_state: Type.Optional(Type.Unsafe<JsonValue>({})),
})

export const sendInviteV2 = endpoint(
  'PUT F/v2/invite/{roomId}/{eventId}',
  { auth: 'server', body: Body },
  async ({ requester, params: { roomId, eventId }, exactBody, bodyOffence }, { federation }) => {
    const { room_version: roomVersion, event, invite_room_state: inviteState } = exactBody
    const invitation = { roomId, eventId, roomVersion, event: { value: event, offence: bodyOffence }, inviteState }
    return { event: await federation.invitations.receive(requester.server, invitation) }
  },
)

import { isObject, type JsonValue } from '../../../core/json.ts'
import { AnyObject, endpoint } from '../../../http/endpoint.ts'

/** For servers that only know this version: the room has version 1 or 2, whose events have the same format. */
export const sendInviteV1 = endpoint(
  'PUT F/v1/invite/{roomId}/{eventId}',
  { auth: 'server', body: AnyObject },
  async ({ requester, params: { roomId, eventId }, exactBody, bodyOffence }, { federation }) => {
    const unsigned: JsonValue | undefined = exactBody.unsigned
    const inviteState = isObject(unsigned) ? unsigned.invite_room_state : undefined
    const event = { value: exactBody, offence: bodyOffence }
    const invitation = { roomId, eventId, roomVersion: '1', event, inviteState }
    return [200, { event: await federation.invitations.receive(requester.server, invitation) }]
  },
)

import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { Delegation, OpenIdToken, refuseDelegation, Text } from './openid-shape.ts'

const Body = Type.Object({
  room_id: Text,
  slot_id: Text,
  openid_token: OpenIdToken,
  member: Type.Object({ id: Text, claimed_user_id: Text, claimed_device_id: Text }),
  ...Delegation,
})

export const getLivekitToken = endpoint(
  'POST /_hearth/livekit/get_token',
  { auth: 'none', limited: 'other', body: Body },
  ({ body }, { calls }) => {
    refuseDelegation(body)
    const { room_id: roomId, slot_id: slotId, openid_token: proof } = body
    const { id, claimed_user_id: userId, claimed_device_id: deviceId } = body.member
    return calls.rtc.enter({ proof, roomId, slotId, member: { id, userId }, deviceId })
  },
)

import { Type } from '../../core/shapes.ts'
import { ROOM_CALL_SLOT } from '../../domain/calls/livekit-names.ts'
import { endpoint } from '../../http/endpoint.ts'
import { Delegation, OpenIdToken, refuseDelegation, Text } from './openid-shape.ts'

const Body = Type.Object({ room: Text, openid_token: OpenIdToken, device_id: Text, ...Delegation })

/** For clients whose calls name participants by user and device. */
export const getSfu = endpoint(
  'POST /_hearth/livekit/sfu/get',
  { auth: 'none', limited: 'other', body: Body },
  ({ body }, { calls }) => {
    refuseDelegation(body)
    const { room: roomId, openid_token: proof, device_id: deviceId } = body
    return calls.rtc.enter({ proof, roomId, slotId: ROOM_CALL_SLOT, member: undefined, deviceId })
  },
)

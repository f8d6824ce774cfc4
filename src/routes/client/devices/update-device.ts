import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'

const Body = Type.Object({ display_name: Type.Optional(Type.Union([Type.String(), Type.Null()])) })

export const updateDevice = endpoint(
  'PUT C/devices/{deviceId}',
  { auth: 'user', guests: true, suspended: true, body: Body },
  async ({ requester, params, body }, { devices }) => {
    const isNew = requester.appservice && (await devices.make(requester.userNid, params.deviceId, body.display_name))
    if (isNew) return rawReply({ status: 201, body: '{}' })
    await devices.rename(requester.userNid, params.deviceId, body.display_name)
    return {}
  },
)

import { Type } from '../../core/shapes.ts'
import { AnyObject, endpoint } from '../../http/endpoint.ts'
import { ownProof } from '../../http/uia.ts'

const Body = Type.Object({ devices: Type.Array(Type.String()), auth: Type.Optional(AnyObject) })

export const deleteDevices = endpoint(
  'POST C/delete_devices',
  { auth: 'user', suspended: true, body: Body, uia: ownProof },
  async ({ requester, body }, { devices }) => {
    await devices.remove(requester.userNid, body.devices)
    return {}
  },
)

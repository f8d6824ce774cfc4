import { Type } from '../../../core/shapes.ts'
import { Details, endpoint } from '../../../http/endpoint.ts'
import { ownProof } from '../../../http/uia.ts'

const Body = Type.Object({ devices: Type.Array(Type.String()), auth: Type.Optional(Details) })

export const deleteDevices = endpoint(
  'POST C/delete_devices',
  { auth: 'user', suspended: true, body: Body, uia: ownProof },
  async ({ requester, body }, { devices }) => {
    await devices.remove(requester.userNid, body.devices)
    return {}
  },
)

import { AnyObject, endpoint } from '../../http/endpoint.ts'
import { ownProof } from '../../http/uia.ts'

export const deleteDevice = endpoint(
  'DELETE C/devices/{deviceId}',
  { auth: 'user', suspended: true, body: AnyObject, bodyOptional: true, uia: ownProof },
  async ({ requester, params }, { devices }) => {
    await devices.remove(requester.userNid, [params.deviceId])
    return {}
  },
)

import { endpoint } from '../../../http/endpoint.ts'
import { AuthBody, ownProof } from '../../../http/uia.ts'

export const deleteDevice = endpoint(
  'DELETE C/devices/{deviceId}',
  { auth: 'user', suspended: true, body: AuthBody, bodyOptional: true, uia: ownProof },
  async ({ requester, params }, { devices }) => {
    await devices.remove(requester.userNid, [params.deviceId])
    return {}
  },
)

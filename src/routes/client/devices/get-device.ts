import { endpoint } from '../../../http/endpoint.ts'

export const getDevice = endpoint(
  'GET C/devices/{deviceId}',
  { auth: 'user', guests: true },
  ({ requester, params }, { devices }) => devices.get(requester.userNid, params.deviceId),
)

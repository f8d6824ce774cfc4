import { endpoint } from '../../../http/endpoint.ts'

export const getDevice = endpoint(
  'GET C/devices/{deviceId}',
  { auth: 'user', anywhere: true, guests: true },
  ({ requester, params }, { devices }) => devices.get(requester.userNid, params.deviceId),
)

import { endpoint } from '../../../http/endpoint.ts'

export const getDevices = endpoint(
  'GET C/devices',
  { auth: 'user', anywhere: true, guests: true },
  async ({ requester }, { devices }) => ({
    devices: await devices.list(requester.userNid),
  }),
)

import { endpoint } from '../../../http/endpoint.ts'

export const getDehydratedDevice = endpoint(
  'GET CU/org.matrix.msc3814.v1/dehydrated_device',
  { auth: 'user', limited: 'other' },
  ({ requester }, { dehydratedDevices }) => dehydratedDevices.get(requester),
)

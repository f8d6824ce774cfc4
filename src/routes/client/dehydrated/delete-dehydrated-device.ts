import { endpoint } from '../../../http/endpoint.ts'

export const deleteDehydratedDevice = endpoint(
  'DELETE CU/org.matrix.msc3814.v1/dehydrated_device',
  { auth: 'user', suspended: true, limited: 'other' },
  async ({ requester }, { dehydratedDevices }) => ({ device_id: await dehydratedDevices.remove(requester) }),
)

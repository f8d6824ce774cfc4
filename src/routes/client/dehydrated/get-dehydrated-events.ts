import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const getDehydratedEvents = endpoint(
  'GET CU/org.matrix.msc3814.v1/dehydrated_device/{deviceId}/events',
  { auth: 'user', limited: 'other', query: Type.Object({ from: Type.Optional(Type.String()) }) },
  ({ requester, params, query }, { dehydratedDevices }) =>
    dehydratedDevices.events(requester, params.deviceId, query.from),
)

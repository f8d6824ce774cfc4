import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

/** As earlier clients ask. */
export const postDehydratedEvents = endpoint(
  'POST CU/org.matrix.msc3814.v1/dehydrated_device/{deviceId}/events',
  {
    auth: 'user',
    suspended: true,
    limited: 'other',
    body: Type.Object({ next_batch: Type.Optional(Type.String()) }),
    bodyOptional: true,
  },
  ({ requester, params, body }, { dehydratedDevices }) =>
    dehydratedDevices.events(requester, params.deviceId, body.next_batch),
)

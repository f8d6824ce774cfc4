import { ProtocolError } from '../../../core/errors.ts'
import { Type } from '../../../core/shapes.ts'
import { AnyObject, endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({
  device_id: Type.String({ minLength: 1, maxLength: 255 }),
  device_data: AnyObject,
  initial_device_display_name: Type.Optional(Type.String()),
  device_keys: AnyObject,
  one_time_keys: Type.Optional(AnyObject),
  fallback_keys: Type.Optional(AnyObject),
})

export const putDehydratedDevice = endpoint(
  'PUT CU/org.matrix.msc3814.v1/dehydrated_device',
  { auth: 'user', suspended: true, limited: 'other', body: Body },
  async ({ requester, body, bodyOffence }, { dehydratedDevices }) => {
    if (bodyOffence) throw new ProtocolError('M_BAD_JSON', 'The body holds what canonical JSON forbids.')
    await dehydratedDevices.put(requester, {
      deviceId: body.device_id,
      data: body.device_data,
      displayName: body.initial_device_display_name,
      keys: {
        deviceKeys: body.device_keys,
        oneTimeKeys: body.one_time_keys ?? {},
        fallbackKeys: body.fallback_keys ?? {},
      },
    })
    return { device_id: body.device_id }
  },
)

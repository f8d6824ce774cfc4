import { ProtocolError } from '../../../core/errors.ts'
import { Type } from '../../../core/shapes.ts'
import { AnyObject, endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({
  device_keys: Type.Optional(AnyObject),
  one_time_keys: Type.Optional(AnyObject),
  fallback_keys: Type.Optional(AnyObject),
  'org.matrix.msc2732.fallback_keys': Type.Optional(AnyObject),
})

export const uploadKeys = endpoint(
  'POST C/keys/upload',
  {
    auth: 'user',
    limited: 'other',
    suspended: true,
    guests: true,
    body: Body,
    // Clients before r0 name the device, which is always their own.
    also: ['C/keys/upload/{deviceId}', 'CU/keys/upload', 'CU/keys/upload/{deviceId}'],
  },
  async ({ requester, body, bodyOffence }, { keyUploads }) => {
    if (bodyOffence) throw new ProtocolError('M_BAD_JSON', 'The body holds what canonical JSON forbids.')
    const { oneTime } = await keyUploads.upload(requester, {
      deviceKeys: body.device_keys,
      oneTimeKeys: body.one_time_keys ?? {},
      fallbackKeys: body.fallback_keys ?? body['org.matrix.msc2732.fallback_keys'] ?? {},
    })
    return { one_time_key_counts: Object.fromEntries(oneTime) }
  },
)

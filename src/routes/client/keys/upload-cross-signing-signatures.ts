import { ProtocolError } from '../../../core/errors.ts'
import { isUserId, type UserId } from '../../../core/ids.ts'
import { isObject, type JsonObject } from '../../../core/json.ts'
import { AnyObject, endpoint } from '../../../http/endpoint.ts'

export const uploadCrossSigningSignatures = endpoint(
  'POST C/keys/signatures/upload',
  {
    auth: 'user',
    limited: 'other',
    suspended: true,
    guests: true,
    body: AnyObject,
    also: ['CU/keys/signatures/upload'],
  },
  async ({ requester, body, bodyOffence }, { keySignatures }) => {
    if (bodyOffence) throw new ProtocolError('M_BAD_JSON', 'The body holds what canonical JSON forbids.')
    return { failures: await keySignatures.upload(requester, readSigned(body)) }
  },
)

function readSigned(body: JsonObject): Map<UserId, JsonObject> {
  return new Map(
    Object.entries(body).map(([userId, objects]) => {
      if (!isUserId(userId)) throw new ProtocolError('M_INVALID_PARAM', 'The body names what is no user id.')
      if (!isObject(objects)) throw new ProtocolError('M_BAD_JSON', 'The body must hold an object for each user.')
      return [userId, objects]
    }),
  )
}

import { ProtocolError } from '../../core/errors.ts'
import { isUserId, type UserId } from '../../core/ids.ts'
import { JsonBytes } from '../../core/json-bytes.ts'
import { Type } from '../../core/shapes.ts'
import { MAX_KEY_QUERY_MS } from '../../domain/limits.ts'
import { AnyObject, endpoint, rawReply } from '../../http/endpoint.ts'
import { writeMap } from './write-map.ts'

const Body = Type.Object({ device_keys: AnyObject, timeout: Type.Optional(Type.Integer({ minimum: 0 })) })

const DEFAULT_TIMEOUT_MS = 10_000

export const queryKeys = endpoint(
  'POST C/keys/query',
  { auth: 'user', guests: true, body: Body, also: ['CU/keys/query'] },
  async ({ requester, body }, { keyQueries }) => {
    const timeoutMs = Math.min(body.timeout ?? DEFAULT_TIMEOUT_MS, MAX_KEY_QUERY_MS)
    const { keys, failures } = await keyQueries.query(requester, readAsked(body.device_keys), timeoutMs)
    const out = new JsonBytes().text('{"device_keys":')
    writeMap(out, keys.devices, (devices) => writeMap(out, devices, (json) => out.text(json)))
    writeMap(out.text(',"master_keys":'), keys.master, (json) => out.text(json))
    writeMap(out.text(',"self_signing_keys":'), keys.self_signing, (json) => out.text(json))
    writeMap(out.text(',"user_signing_keys":'), keys.user_signing, (json) => out.text(json))
    return rawReply({ body: out.text(',"failures":').value(failures).text('}').toBuffer() })
  },
)

function readAsked(deviceKeys: Readonly<Record<string, unknown>>): Map<UserId, string[]> {
  return new Map(
    Object.entries(deviceKeys).map(([userId, ids]) => {
      if (!isUserId(userId)) throw new ProtocolError('M_INVALID_PARAM', "'device_keys' names what is no user id.")
      // Clients of old write an empty object for "all".
      const list: unknown[] = Array.isArray(ids) ? ids : []
      if (!list.every((id) => typeof id === 'string')) {
        throw new ProtocolError('M_BAD_JSON', "'device_keys' must hold lists of device ids.")
      }
      return [userId, list]
    }),
  )
}

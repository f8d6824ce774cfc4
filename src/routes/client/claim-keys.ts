import { ProtocolError } from '../../core/errors.ts'
import { isUserId, type UserId } from '../../core/ids.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import { JsonBytes } from '../../core/json-bytes.ts'
import { Type } from '../../core/shapes.ts'
import { MAX_KEY_QUERY_MS } from '../../domain/limits.ts'
import { AnyObject, endpoint, rawReply } from '../../http/endpoint.ts'
import { writeMap } from './write-map.ts'

const Body = Type.Object({ one_time_keys: AnyObject, timeout: Type.Optional(Type.Integer({ minimum: 0 })) })

const DEFAULT_TIMEOUT_MS = 10_000

export const claimKeys = endpoint(
  'POST C/keys/claim',
  { auth: 'user', guests: true, body: Body, also: ['CU/keys/claim'] },
  async ({ body }, { keyClaims }) => {
    const timeoutMs = Math.min(body.timeout ?? DEFAULT_TIMEOUT_MS, MAX_KEY_QUERY_MS)
    const { keys, failures } = await keyClaims.claim(readWanted(body.one_time_keys), timeoutMs)
    const out = new JsonBytes().text('{"one_time_keys":')
    writeMap(out, keys, (devices) => writeMap(out, devices, (json) => out.text(json)))
    return rawReply({ body: out.text(',"failures":').value(failures).text('}').toBuffer() })
  },
)

function readWanted(wanted: JsonObject): Map<UserId, Map<string, string>> {
  return new Map(
    Object.entries(wanted).map(([userId, devices]) => {
      if (!isUserId(userId)) throw new ProtocolError('M_INVALID_PARAM', "'one_time_keys' names what is no user id.")
      const named = isObject(devices) ? Object.entries(devices) : [['', undefined] as const]
      for (const [deviceId, algorithm] of named) {
        const isText = typeof algorithm === 'string' && !algorithm.includes('\0') && !deviceId.includes('\0')
        if (!isText) throw new ProtocolError('M_BAD_JSON', "'one_time_keys' must name an algorithm for each device.")
      }
      return [userId, new Map(named as [string, string][])]
    }),
  )
}

import { JsonBytes } from '../../../core/json-bytes.ts'
import { Type } from '../../../core/shapes.ts'
import { MAX_KEY_QUERY_MS } from '../../../domain/limits.ts'
import { AnyObject, endpoint, rawReply } from '../../../http/endpoint.ts'
import { readWantedKeys } from '../../../http/key-requests.ts'
import { writeMap } from '../../../http/write-map.ts'

const Body = Type.Object({ one_time_keys: AnyObject, timeout: Type.Optional(Type.Integer({ minimum: 0 })) })

const DEFAULT_TIMEOUT_MS = 10_000

export const claimKeys = endpoint(
  'POST C/keys/claim',
  { auth: 'user', suspended: true, guests: true, limited: 'other', body: Body, also: ['CU/keys/claim'] },
  async ({ requester, body }, { keyClaims }) => {
    const timeoutMs = Math.min(body.timeout ?? DEFAULT_TIMEOUT_MS, MAX_KEY_QUERY_MS)
    const { keys, failures } = await keyClaims.claim(requester, readWantedKeys(body.one_time_keys), timeoutMs)
    const out = new JsonBytes().text('{"one_time_keys":')
    writeMap(out, keys, (devices) => writeMap(out, devices, (json) => out.text(json)))
    return rawReply({ body: out.text(',"failures":').value(failures).text('}').toBuffer() })
  },
)

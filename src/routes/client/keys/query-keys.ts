import { JsonBytes } from '../../../core/json-bytes.ts'
import { Type } from '../../../core/shapes.ts'
import { MAX_KEY_QUERY_MS } from '../../../domain/limits.ts'
import { AnyObject, endpoint, rawReply } from '../../../http/endpoint.ts'
import { readAskedKeys } from '../../../http/key-requests.ts'
import { writeMap } from '../../../http/write-map.ts'

const Body = Type.Object({ device_keys: AnyObject, timeout: Type.Optional(Type.Integer({ minimum: 0 })) })

const DEFAULT_TIMEOUT_MS = 10_000

export const queryKeys = endpoint(
  'POST C/keys/query',
  {
    auth: 'user',
    anywhere: true,
    suspended: true,
    guests: true,
    limited: 'other',
    body: Body,
    also: ['CU/keys/query'],
  },
  async ({ requester, body }, { keyQueries, sync }) => {
    const timeoutMs = Math.min(body.timeout ?? DEFAULT_TIMEOUT_MS, MAX_KEY_QUERY_MS)
    const asked = readAskedKeys(body.device_keys)
    const found = async (): Promise<JsonBytes> => {
      const { keys, failures } = await keyQueries.query(requester, asked, timeoutMs)
      const out = new JsonBytes().text('{"device_keys":')
      writeMap(out, keys.devices, (devices) => writeMap(out, devices, (json) => out.text(json)))
      writeMap(out.text(',"master_keys":'), keys.master, (json) => out.text(json))
      writeMap(out.text(',"self_signing_keys":'), keys.self_signing, (json) => out.text(json))
      writeMap(out.text(',"user_signing_keys":'), keys.user_signing, (json) => out.text(json))
      return out.text(',"failures":').value(failures).text('}')
    }
    return rawReply(await sync.answer(requester, found))
  },
)

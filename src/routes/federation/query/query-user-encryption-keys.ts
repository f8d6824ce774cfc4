import { JsonBytes } from '../../../core/json-bytes.ts'
import { Type } from '../../../core/shapes.ts'
import { AnyObject, endpoint, rawReply } from '../../../http/endpoint.ts'
import { readAskedKeys } from '../../../http/key-requests.ts'
import { writeMap } from '../../../http/write-map.ts'

const Body = Type.Object({ device_keys: AnyObject })

export const queryUserEncryptionKeys = endpoint(
  'POST F/v1/user/keys/query',
  { auth: 'server', body: Body },
  async ({ body }, { keyQueries }) => {
    const keys = await keyQueries.queryLocal(readAskedKeys(body.device_keys))
    const out = new JsonBytes().text('{"device_keys":')
    writeMap(out, keys.devices, (devices) => writeMap(out, devices, (json) => out.text(json)))
    writeMap(out.text(',"master_keys":'), keys.master, (json) => out.text(json))
    writeMap(out.text(',"self_signing_keys":'), keys.self_signing, (json) => out.text(json))
    return rawReply({ body: out.text('}').toBuffer() })
  },
)

import { JsonBytes } from '../../../core/json-bytes.ts'
import { Type } from '../../../core/shapes.ts'
import { AnyObject, endpoint, rawReply } from '../../../http/endpoint.ts'
import { readWantedKeys } from '../../../http/key-requests.ts'
import { writeMap } from '../../../http/write-map.ts'

const Body = Type.Object({ one_time_keys: AnyObject })

export const claimUserEncryptionKeys = endpoint(
  'POST F/v1/user/keys/claim',
  { auth: 'server', body: Body },
  async ({ body }, { keyClaims }) => {
    const keys = await keyClaims.claimLocal(readWantedKeys(body.one_time_keys))
    const out = new JsonBytes().text('{"one_time_keys":')
    writeMap(out, keys, (devices) => writeMap(out, devices, (json) => out.text(json)))
    return rawReply({ body: out.text('}').toBuffer() })
  },
)

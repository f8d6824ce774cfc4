import { ProtocolError } from '../../../core/errors.ts'
import type { UserId } from '../../../core/ids.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'

export const getUserDevices = endpoint(
  'GET F/v1/user/devices/{userId}',
  { auth: 'server' },
  async ({ params }, { keyQueries }) => {
    const userId = params.userId as UserId
    const list = await keyQueries.listOf(userId)
    if (!list) throw new ProtocolError('M_NOT_FOUND', 'There is no such user on this server.')
    const { version, keys } = list
    const out = new JsonBytes().text('{"user_id":').value(userId).text(`,"stream_id":${version},"devices":[`)
    let isFirst = true
    for (const [deviceId, json] of keys.devices.get(userId) ?? []) {
      const { unsigned } = JSON.parse(json) as { unsigned: { device_display_name?: string } }
      out
        .text(`${isFirst ? '' : ','}{"device_id":`)
        .value(deviceId)
        .text(`,"keys":${json}`)
      if (unsigned.device_display_name !== undefined) {
        out.text(',"device_display_name":').value(unsigned.device_display_name)
      }
      out.text('}')
      isFirst = false
    }
    out.text(']')
    for (const usage of ['master', 'self_signing'] as const) {
      const json = keys[usage].get(userId)
      if (json !== undefined) out.text(`,"${usage}_key":${json}`)
    }
    return rawReply({ body: out.text('}').toBuffer() })
  },
)

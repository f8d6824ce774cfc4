import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const blockRoom = endpoint(
  'PUT /_synapse/admin/v1/rooms/{roomId}/block',
  { auth: 'admin', body: Type.Object({ block: Type.Boolean() }) },
  async ({ requester, params, body }, { admin }) => {
    await admin.roomBlocks.set(requester.name, params.roomId, body.block)
    return { block: body.block }
  },
)

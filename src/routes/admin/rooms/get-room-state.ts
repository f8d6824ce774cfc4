import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'

export const getRoomState = endpoint(
  'GET /_synapse/admin/v1/rooms/{roomId}/state',
  { auth: 'admin', recorded: true, query: Type.Object({ type: Type.Optional(Type.String()) }) },
  async ({ params, query }, { admin }) =>
    rawReply({ body: (await admin.rooms.state(params.roomId, query.type)).toBuffer() }),
)

import { endpoint } from '../../../http/endpoint.ts'

export const getRoom = endpoint('GET /_synapse/admin/v1/rooms/{roomId}', { auth: 'admin' }, ({ params }, { admin }) =>
  admin.rooms.get(params.roomId),
)

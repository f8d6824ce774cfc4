import { endpoint } from '../../../http/endpoint.ts'

export const listRoomMedia = endpoint(
  'GET /_synapse/admin/v1/room/{roomId}/media',
  { auth: 'admin', recorded: true },
  ({ params }, { media }) => media.desk.inRoom(params.roomId),
)

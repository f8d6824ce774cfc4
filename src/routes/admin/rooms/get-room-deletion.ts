import { endpoint } from '../../../http/endpoint.ts'

export const getRoomDeletion = endpoint(
  'GET /_synapse/admin/v2/rooms/delete_status/{deleteId}',
  { auth: 'admin' },
  ({ params }, { admin }) => admin.roomDeletions.status(params.deleteId),
)

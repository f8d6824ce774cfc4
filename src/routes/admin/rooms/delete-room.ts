import { endpoint } from '../../../http/endpoint.ts'
import { RemovalBody, removalOf } from './removal-body.ts'

export const deleteRoom = endpoint(
  'DELETE /_synapse/admin/v2/rooms/{roomId}',
  { auth: 'admin', grave: true, body: RemovalBody },
  async ({ requester, params, body }, { admin, config }) => ({
    delete_id: await admin.roomDeletions.begin(requester.name, params.roomId, removalOf(body, config.server_name)),
  }),
)

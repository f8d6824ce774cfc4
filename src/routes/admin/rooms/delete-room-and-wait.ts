import { endpoint } from '../../../http/endpoint.ts'
import { RemovalBody, removalOf } from './removal-body.ts'

/** The older form: it answers when the room is gone. Whoever does not wait finds the removal in `delete_status`. */
export const deleteRoomAndWait = endpoint(
  'DELETE /_synapse/admin/v1/rooms/{roomId}',
  { auth: 'admin', grave: true, body: RemovalBody, bodyOptional: true },
  async ({ requester, params, body }, { admin, config }) => {
    const id = await admin.roomDeletions.begin(requester.name, params.roomId, removalOf(body, config.server_name))
    return admin.roomDeletions.ended(id)
  },
)

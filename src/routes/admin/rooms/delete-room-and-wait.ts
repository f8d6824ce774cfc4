import { endpoint } from '../../../http/endpoint.ts'
import { RemovalBody, removalOf } from './removal-body.ts'

/** The older form: it answers when the room is gone. Whoever does not wait finds the removal in `delete_status`. */
export const deleteRoomAndWait = endpoint(
  'DELETE /_synapse/admin/v1/rooms/{roomId}',
  { auth: 'admin', grave: true, body: RemovalBody, bodyOptional: true },
  async ({ requester, params, body }, { admin, config }) => {
    // A room that is not known here is kept from coming.
    if (body.block === true && !(await admin.rooms.isKnown(params.roomId))) {
      await admin.roomBlocks.set(requester.name, params.roomId, true)
      return { kicked_users: [], failed_to_kick_users: [], local_aliases: [], new_room_id: null }
    }
    const id = await admin.roomDeletions.begin(requester.name, params.roomId, removalOf(body, config.server_name))
    return admin.roomDeletions.ended(id)
  },
)

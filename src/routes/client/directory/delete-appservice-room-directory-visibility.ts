import { endpoint } from '../../../http/endpoint.ts'

/** The same as setting it to `private`. It is not in the specification, but bridges call it to unpublish their rooms. */
export const deleteAppserviceRoomDirectoryVisibility = endpoint(
  'DELETE C/directory/list/appservice/{networkId}/{roomId}',
  { auth: 'user', limited: 'other' },
  async ({ requester, params }, { appservices }) => {
    await appservices.networkRooms.setVisibility(requester, params.networkId, params.roomId, 'private')
    return {}
  },
)

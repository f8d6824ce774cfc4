import { endpoint } from '../../../http/endpoint.ts'

/** The same as setting it to `private`. Not published; bridges that take their rooms back ask for it. */
export const deleteAppserviceRoomDirectoryVisibility = endpoint(
  'DELETE C/directory/list/appservice/{networkId}/{roomId}',
  { auth: 'user', limited: 'other' },
  async ({ requester, params }, { appservices }) => {
    await appservices.networkRooms.setVisibility(requester, params.networkId, params.roomId, 'private')
    return {}
  },
)

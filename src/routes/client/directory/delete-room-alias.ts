import { endpoint } from '../../../http/endpoint.ts'

export const deleteRoomAlias = endpoint(
  'DELETE C/directory/room/{roomAlias}',
  { auth: 'user', limited: 'other' },
  async ({ requester, params }, { aliases }) => {
    await aliases.remove(requester, params.roomAlias)
    return {}
  },
)

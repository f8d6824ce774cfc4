import { endpoint } from '../../../http/endpoint.ts'

export const getRoomVisibilityOnDirectory = endpoint(
  'GET C/directory/list/room/{roomId}',
  { auth: 'none' },
  async ({ params }, { directory }) => ({ visibility: await directory.visibilityOf(params.roomId) }),
)

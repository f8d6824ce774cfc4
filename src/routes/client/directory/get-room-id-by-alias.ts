import { endpoint } from '../../../http/endpoint.ts'

export const getRoomIdByAlias = endpoint(
  'GET C/directory/room/{roomAlias}',
  { auth: 'none' },
  ({ params }, { aliases }) => aliases.resolve(params.roomAlias),
)

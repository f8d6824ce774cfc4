import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const getMutualRooms = endpoint(
  'GET C1/mutual_rooms',
  {
    auth: 'user',
    limited: 'other',
    also: ['CU/uk.half-shot.msc2666/user/mutual_rooms'],
    query: Type.Object({ user_id: Type.String(), from: Type.Optional(Type.String()) }),
  },
  ({ requester, query: { user_id, from } }, { mutualRooms }) => mutualRooms.list(requester, user_id, from),
)

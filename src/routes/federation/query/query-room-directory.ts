import type { RoomAlias } from '../../../core/ids.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({ room_alias: Type.Unsafe<RoomAlias>({ type: 'string', format: 'room-alias' }) })

export const queryRoomDirectory = endpoint(
  'GET F/v1/query/directory',
  { auth: 'server', query: Query },
  ({ query }, { aliases }) => aliases.resolveHere(query.room_alias),
)

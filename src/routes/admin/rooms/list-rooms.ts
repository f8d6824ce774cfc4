import { ProtocolError } from '../../../core/errors.ts'
import { Type } from '../../../core/shapes.ts'
import type { RoomOrder } from '../../../domain/admin/room-view.ts'
import { checkText } from '../../../domain/text.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { PageQuery } from '../page-query.ts'

const ORDERS = [
  'name',
  'alphabetical',
  'canonical_alias',
  'joined_members',
  'size',
  'joined_local_members',
  'version',
  'creator',
  'encryption',
  'federatable',
  'public',
  'join_rules',
  'guest_access',
  'history_visibility',
  'state_events',
] as const satisfies readonly RoomOrder[]

const Query = Type.Object({
  ...PageQuery,
  order_by: Type.Optional(Type.Unsafe<RoomOrder>({ type: 'string', enum: ORDERS })),
  search_term: Type.Optional(Type.String()),
  public_rooms: Type.Optional(Type.Boolean()),
  empty_rooms: Type.Optional(Type.Boolean()),
})

const MAX_TERM_CHARS = 512

export const listRooms = endpoint(
  'GET /_synapse/admin/v1/rooms',
  { auth: 'admin', query: Query },
  ({ query }, { admin }) => {
    checkText('search_term', query.search_term ?? '', MAX_TERM_CHARS)
    if (query.search_term === '') throw new ProtocolError('M_INVALID_PARAM', "Query parameter 'search_term' is empty.")
    return admin.rooms.list(query)
  },
)

import { endpoint } from '../../../http/endpoint.ts'
import { PublicRoomsBody } from '../../client/directory/query-public-rooms.ts'

export const queryPublicRooms = endpoint(
  'POST F/v1/publicRooms',
  { auth: 'server', body: PublicRoomsBody, bodyOptional: true },
  ({ body }, { directory }) =>
    directory.list({
      limit: body.limit,
      since: body.since,
      term: body.filter?.generic_search_term ?? undefined,
      types: body.filter?.room_types ?? undefined,
      network: body.third_party_instance_id ?? undefined,
    }),
)

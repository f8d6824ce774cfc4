import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({ server: Type.Optional(Type.String()) })

export const PublicRoomsBody = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 0 })),
  since: Type.Optional(Type.String()),
  filter: Type.Optional(
    Type.Object({
      generic_search_term: Type.Optional(Type.Union([Type.String({ maxLength: 1000 }), Type.Null()])),
      room_types: Type.Optional(
        Type.Union([Type.Array(Type.Union([Type.String(), Type.Null()]), { maxItems: 100 }), Type.Null()]),
      ),
    }),
  ),
  include_all_networks: Type.Optional(Type.Boolean()),
  third_party_instance_id: Type.Optional(Type.Union([Type.String(), Type.Null()])),
})

export const queryPublicRooms = endpoint(
  'POST C/publicRooms',
  {
    auth: 'user',
    suspended: true,
    guests: true,
    limited: 'other',
    query: Query,
    body: PublicRoomsBody,
    bodyOptional: true,
  },
  ({ query, body }, { directory }) =>
    directory.list({
      server: query.server,
      limit: body.limit,
      since: body.since,
      term: body.filter?.generic_search_term ?? undefined,
      types: body.filter?.room_types ?? undefined,
      allNetworks: body.include_all_networks,
      network: body.third_party_instance_id ?? undefined,
    }),
)

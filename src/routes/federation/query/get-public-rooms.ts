import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 0 })),
  since: Type.Optional(Type.String()),
  include_all_networks: Type.Optional(Type.Boolean()),
  third_party_instance_id: Type.Optional(Type.String()),
})

export const getPublicRooms = endpoint(
  'GET F/v1/publicRooms',
  { auth: 'server', query: Query },
  ({ query: { limit, since, third_party_instance_id: network } }, { directory }) =>
    directory.list({ limit, since, network }),
)

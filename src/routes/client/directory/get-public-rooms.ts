import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 0 })),
  since: Type.Optional(Type.String()),
  server: Type.Optional(Type.String()),
})

export const getPublicRooms = endpoint(
  'GET C/publicRooms',
  { auth: 'optional', guests: true, limited: 'other', query: Query },
  ({ query }, { directory }) => directory.list(query),
)

import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({ suggested_only: Type.Optional(Type.Boolean()) })

export const getSpaceHierarchy = endpoint(
  'GET F/v1/hierarchy/{roomId}',
  { auth: 'server', query: Query },
  ({ requester, params, query }, { federation }) =>
    federation.spaceAnswers.hierarchy(requester.server, params.roomId, query.suggested_only ?? false),
)

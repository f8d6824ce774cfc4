import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'

export const queryLocationByAlias = endpoint(
  'GET A/thirdparty/location',
  { auth: 'hosted', query: Type.Object({ alias: Type.String() }) },
  ({ requester, query }) => requester.hosted.lookUp('location', query.alias),
)

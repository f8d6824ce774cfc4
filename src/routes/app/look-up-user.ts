import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'

export const lookUpUser = endpoint(
  'GET A/thirdparty/user',
  { auth: 'hosted', query: Type.Object({ userid: Type.String() }) },
  ({ requester, query }) => requester.hosted.lookUp('user', query.userid),
)

import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const queryUserById = endpoint(
  'GET C/thirdparty/user',
  { auth: 'user', limited: 'other', query: Type.Object({ userid: Type.String() }) },
  ({ query }, { appservices }) => appservices.thirdParty.lookUp('user', query.userid),
)

import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const queryLocationByAlias = endpoint(
  'GET C/thirdparty/location',
  { auth: 'user', limited: 'other', query: Type.Object({ alias: Type.String() }) },
  ({ query }, { appservices }) => appservices.thirdParty.lookUp('location', query.alias),
)

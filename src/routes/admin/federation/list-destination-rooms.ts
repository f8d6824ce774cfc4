import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { PageQuery, pageOf } from '../page-query.ts'

export const listDestinationRooms = endpoint(
  'GET /_synapse/admin/v1/federation/destinations/{serverName}/rooms',
  { auth: 'admin', query: Type.Object({ ...PageQuery }) },
  ({ params, query }, { admin }) => admin.federation.rooms(params.serverName, pageOf(query)),
)

import { endpoint } from '../../../http/endpoint.ts'

export const getDestination = endpoint(
  'GET /_synapse/admin/v1/federation/destinations/{serverName}',
  { auth: 'admin' },
  ({ params }, { admin }) => admin.federation.get(params.serverName),
)

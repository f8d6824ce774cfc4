import { endpoint } from '../../../http/endpoint.ts'

export const getServerVersion = endpoint(
  'GET /_synapse/admin/v1/server_version',
  { auth: 'none' },
  (_request, { version }) => ({ server_version: `Hearth ${version}` }),
)

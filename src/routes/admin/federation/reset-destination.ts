import { endpoint } from '../../../http/endpoint.ts'

export const resetDestination = endpoint(
  'POST /_synapse/admin/v1/federation/destinations/{serverName}/reset_connection',
  { auth: 'admin' },
  async ({ params }, { admin }) => {
    await admin.federation.retry(params.serverName)
    return {}
  },
)

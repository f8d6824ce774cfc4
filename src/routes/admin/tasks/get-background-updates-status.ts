import { endpoint } from '../../../http/endpoint.ts'

export const getBackgroundUpdatesStatus = endpoint(
  'GET /_synapse/admin/v1/background_updates/status',
  { auth: 'admin' },
  (_request, { admin }) => admin.backgroundUpdates.status(),
)

import { endpoint } from '../../../http/endpoint.ts'

export const getBackgroundUpdatesEnabled = endpoint(
  'GET /_synapse/admin/v1/background_updates/enabled',
  { auth: 'admin' },
  (_request, { admin }) => ({ enabled: admin.backgroundUpdates.isEnabled() }),
)

import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const setBackgroundUpdatesEnabled = endpoint(
  'POST /_synapse/admin/v1/background_updates/enabled',
  { auth: 'admin', body: Type.Object({ enabled: Type.Optional(Type.Boolean()) }) },
  ({ body: { enabled = true } }, { admin }) => {
    admin.backgroundUpdates.setEnabled(enabled)
    return { enabled }
  },
)

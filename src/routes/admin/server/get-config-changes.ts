import { endpoint } from '../../../http/endpoint.ts'

export const getConfigChanges = endpoint(
  'GET /_hearth/admin/v1/config_changes',
  { auth: 'admin' },
  async (_request, { admin: { diagnostics } }) => ({
    changes: [...diagnostics.configChanges()],
    in_force: diagnostics.configInForce().map(({ key, value }) => ({ key, value })),
  }),
)

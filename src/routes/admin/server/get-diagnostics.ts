import { endpoint } from '../../../http/endpoint.ts'

export const getDiagnostics = endpoint(
  'GET /_hearth/admin/v1/diagnostics',
  { auth: 'admin' },
  async (_request, { admin: { diagnostics } }) => ({
    recent_errors: [...diagnostics.recentErrors()],
    metrics: await diagnostics.metrics(),
  }),
)

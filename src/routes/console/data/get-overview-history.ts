import { endpoint } from '../../../http/endpoint.ts'

export const getOverviewHistory = endpoint(
  'GET /_hearth/admin/v1/overview/history',
  { auth: 'admin' },
  (_request, { admin }) => admin.views.history.read(),
)

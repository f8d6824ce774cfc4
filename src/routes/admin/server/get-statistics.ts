import { endpoint } from '../../../http/endpoint.ts'

export const getStatistics = endpoint(
  'GET /_hearth/admin/v1/statistics',
  { auth: 'admin' },
  async (_request, { admin }) => ({ monthly_active_users: await admin.statistics.monthlyActiveUsers() }),
)

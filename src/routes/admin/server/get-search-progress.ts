import { endpoint } from '../../../http/endpoint.ts'

export const getSearchProgress = endpoint(
  'GET /_hearth/admin/v1/search',
  { auth: 'admin' },
  async (_request, { admin }) => ({ ...(await admin.search.progress()) }),
)

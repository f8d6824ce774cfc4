import { endpoint } from '../../../http/endpoint.ts'

export const rebuildSearch = endpoint(
  'POST /_hearth/admin/v1/search/rebuild',
  { auth: 'admin' },
  async (_request, { admin }) => {
    await admin.search.rebuild()
    return {}
  },
)

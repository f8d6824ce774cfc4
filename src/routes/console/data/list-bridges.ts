import { endpoint } from '../../../http/endpoint.ts'

export const listBridges = endpoint(
  'GET /_hearth/admin/v1/appservices',
  { auth: 'admin' },
  async (_request, { admin }) => ({ appservices: await admin.views.operations.bridges() }),
)

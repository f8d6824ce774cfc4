import { endpoint } from '../../../http/endpoint.ts'

export const getOverview = endpoint('GET /_hearth/admin/v1/overview', { auth: 'admin' }, (_request, { admin }) =>
  admin.views.overview.read(),
)

import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { PageQuery, pageOf } from '../page-query.ts'

export const listApprovals = endpoint(
  'GET /_hearth/admin/v1/approvals',
  { auth: 'admin', query: Type.Object({ ...PageQuery }) },
  ({ query }, { admin }) => admin.approvals.list(pageOf(query)),
)

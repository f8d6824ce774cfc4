import { endpoint } from '../../../http/endpoint.ts'

export const refuseAccount = endpoint(
  'POST /_hearth/admin/v1/approvals/{userId}/refuse',
  { auth: 'admin' },
  async ({ params }, { admin }) => {
    await admin.approvals.refuse(params.userId)
    return {}
  },
)

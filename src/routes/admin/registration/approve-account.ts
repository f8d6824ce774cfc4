import { endpoint } from '../../../http/endpoint.ts'

export const approveAccount = endpoint(
  'POST /_hearth/admin/v1/approvals/{userId}/approve',
  { auth: 'admin' },
  async ({ params }, { admin }) => {
    await admin.approvals.approve(params.userId)
    return {}
  },
)

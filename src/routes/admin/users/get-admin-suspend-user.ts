import { endpoint } from '../../../http/endpoint.ts'

export const getAdminSuspendUser = endpoint(
  'GET C1/admin/suspend/{userId}',
  { auth: 'admin', recorded: true },
  async ({ params: { userId } }, { admin }) => ({ suspended: (await admin.restraints.get(userId)).isSuspended }),
)

import { endpoint } from '../../../http/endpoint.ts'

export const getAdminLockUser = endpoint(
  'GET C1/admin/lock/{userId}',
  { auth: 'admin', recorded: true },
  async ({ params: { userId } }, { admin }) => ({ locked: (await admin.restraints.get(userId)).isLocked }),
)

import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const setAdminSuspendUser = endpoint(
  'PUT C1/admin/suspend/{userId}',
  { auth: 'admin', body: Type.Object({ suspended: Type.Boolean() }) },
  async ({ requester, params: { userId }, body: { suspended } }, { admin }) => {
    await admin.restraints.set(requester, userId, { isSuspended: suspended })
    return { suspended }
  },
)

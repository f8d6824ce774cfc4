import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const setAdminLockUser = endpoint(
  'PUT C1/admin/lock/{userId}',
  { auth: 'admin', body: Type.Object({ locked: Type.Boolean() }) },
  async ({ requester, params: { userId }, body: { locked } }, { admin }) => {
    await admin.restraints.set(requester, userId, { isLocked: locked })
    return { locked }
  },
)

import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const suspendUser = endpoint(
  'PUT /_synapse/admin/v1/suspend/{userId}',
  { auth: 'admin', body: Type.Object({ suspend: Type.Boolean() }) },
  async ({ requester, params: { userId }, body: { suspend } }, { admin }) => {
    await admin.restraints.set(requester, userId, { isSuspended: suspend })
    return { [`user_${userId}_suspended`]: suspend }
  },
)

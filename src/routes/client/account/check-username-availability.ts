import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const checkUsernameAvailability = endpoint(
  'GET C/register/available',
  { auth: 'none', limited: 'other', query: Type.Object({ username: Type.String() }) },
  async ({ query }, { registration }) => {
    await registration.checkAvailable(query.username)
    return { available: true }
  },
)

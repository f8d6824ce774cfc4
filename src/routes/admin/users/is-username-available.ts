import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const isUsernameAvailable = endpoint(
  'GET /_synapse/admin/v1/username_available',
  { auth: 'admin', query: Type.Object({ username: Type.String() }) },
  async ({ query }, { registration }) => {
    await registration.checkAvailable(query.username)
    return { available: true }
  },
)

import { endpoint } from '../../http/endpoint.ts'

export const getUserProfile = endpoint('GET C/profile/{userId}', { auth: 'none' }, ({ params }, { profiles }) =>
  profiles.get(params.userId),
)

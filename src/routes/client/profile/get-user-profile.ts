import { endpoint } from '../../../http/endpoint.ts'

export const getUserProfile = endpoint(
  'GET C/profile/{userId}',
  { auth: 'none', limited: 'other' },
  ({ params }, { profiles }) => profiles.get(params.userId),
)

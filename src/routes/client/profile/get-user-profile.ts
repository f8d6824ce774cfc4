import { endpoint } from '../../../http/endpoint.ts'

export const getUserProfile = endpoint(
  'GET C/profile/{userId}',
  { auth: 'none', limited: 'other', also: ['CU/uk.tcpip.msc4133/profile/{userId}'] },
  ({ params }, { profiles }) => profiles.get(params.userId),
)

import { endpoint } from '../../../http/endpoint.ts'

export const getUserProfile = endpoint(
  'GET C/profile/{userId}',
  { auth: 'optional', anywhere: true, guests: true, limited: 'other', also: ['CU/uk.tcpip.msc4133/profile/{userId}'] },
  async ({ requester, params: { userId } }, { profiles, profileAccess }) => {
    await profileAccess.require(requester, userId)
    return profiles.get(userId)
  },
)

import { endpoint } from '../../../http/endpoint.ts'

export const logOutAccount = endpoint(
  'POST P2/account/logout',
  { auth: 'identity', beforeTerms: true, unknownToken: 'M_UNKNOWN_TOKEN' },
  async ({ requester }, { identity }) => {
    await identity.accounts.logout(requester)
    return {}
  },
)

import { endpoint } from '../../../http/endpoint.ts'

export const logout = endpoint(
  'POST C/logout',
  { auth: 'user', suspended: true, locked: true, guests: true },
  async ({ requester }, { logins }) => {
    await logins.logout(requester)
    return {}
  },
)

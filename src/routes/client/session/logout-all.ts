import { endpoint } from '../../../http/endpoint.ts'

export const logoutAll = endpoint(
  'POST C/logout/all',
  { auth: 'user', suspended: true, locked: true, guests: true },
  async ({ requester }, { logins }) => {
    await logins.logoutAll(requester)
    return {}
  },
)

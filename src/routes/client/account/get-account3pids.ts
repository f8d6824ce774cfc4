import { endpoint } from '../../../http/endpoint.ts'

export const getAccount3pids = endpoint(
  'GET C/account/3pid',
  { auth: 'user' },
  async ({ requester }, { contacts }) => ({ threepids: await contacts.list(requester.userNid) }),
)

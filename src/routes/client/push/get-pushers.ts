import { endpoint } from '../../../http/endpoint.ts'

export const getPushers = endpoint('GET C/pushers', { auth: 'user' }, async ({ requester }, { pushers }) => ({
  pushers: await pushers.list(requester.userNid),
}))

import { endpoint } from '../../../http/endpoint.ts'

export const getAccount = endpoint('GET P2/account', { auth: 'identity' }, ({ requester }) => ({
  user_id: requester.userId,
}))

import { endpoint } from '../../../http/endpoint.ts'

export const getPushers = endpoint('GET C/pushers', { auth: 'user' }, () => ({ pushers: [] }))

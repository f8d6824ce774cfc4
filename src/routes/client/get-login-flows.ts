import { endpoint } from '../../http/endpoint.ts'

export const getLoginFlows = endpoint('GET C/login', { auth: 'none', limited: 'other' }, () => ({
  flows: [{ type: 'm.login.password' }],
}))

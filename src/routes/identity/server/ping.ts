import { endpoint } from '../../../http/endpoint.ts'

export const ping = endpoint('GET P2', { auth: 'none', also: ['P1'] }, () => ({}))

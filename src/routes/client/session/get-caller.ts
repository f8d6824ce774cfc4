import { endpoint } from '../../../http/endpoint.ts'

/** Answers the caller's address as this server sees it, so that an operator can check the proxy's settings. Not in the specification. */
export const getCaller = endpoint('GET CU/hearth.caller', { auth: 'none', limited: 'other' }, ({ ip }) => ({
  address: ip,
}))

import { endpoint } from '../../../http/endpoint.ts'

/** Tells callers whom this server takes them for, so that an operator sees whether a proxy says who calls. No part of the specification. */
export const getCaller = endpoint('GET CU/hearth.caller', { auth: 'none', limited: 'other' }, ({ ip }) => ({
  address: ip,
}))

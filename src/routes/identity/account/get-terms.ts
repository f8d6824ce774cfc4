import { endpoint } from '../../../http/endpoint.ts'

export const getTerms = endpoint('GET P2/terms', { auth: 'none' }, (_request, { identity }) => ({
  policies: identity.terms.policies,
}))

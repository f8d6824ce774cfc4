import { endpoint } from '../../../http/endpoint.ts'

export const getHashDetails = endpoint('GET P2/hash_details', { auth: 'identity' }, (_request, { identity }) =>
  identity.lookup.hashDetails(),
)

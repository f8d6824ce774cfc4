import { endpoint } from '../../../http/endpoint.ts'

export const getRegistrationNonce = endpoint(
  'GET /_synapse/admin/v1/register',
  { auth: 'none', limited: 'other' },
  (_request, { admin }) => ({ nonce: admin.sharedSecret.nonce() }),
)

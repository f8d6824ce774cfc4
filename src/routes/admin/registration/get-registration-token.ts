import { endpoint } from '../../../http/endpoint.ts'

export const getRegistrationToken = endpoint(
  'GET /_synapse/admin/v1/registration_tokens/{token}',
  { auth: 'admin' },
  ({ params }, { admin }) => admin.registrationTokens.get(params.token),
)

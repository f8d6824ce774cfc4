import { endpoint } from '../../../http/endpoint.ts'

export const deleteRegistrationToken = endpoint(
  'DELETE /_synapse/admin/v1/registration_tokens/{token}',
  { auth: 'admin' },
  async ({ params }, { admin }) => {
    await admin.registrationTokens.remove(params.token)
    return {}
  },
)

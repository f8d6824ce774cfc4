import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const listRegistrationTokens = endpoint(
  'GET /_synapse/admin/v1/registration_tokens',
  { auth: 'admin', recorded: true, query: Type.Object({ valid: Type.Optional(Type.Boolean()) }) },
  async ({ query }, { admin }) => ({ registration_tokens: await admin.registrationTokens.list(query.valid) }),
)

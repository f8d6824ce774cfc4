import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const registrationTokenValidity = endpoint(
  'GET C1/register/m.login.registration_token/validity',
  { auth: 'none', limited: 'registration', query: Type.Object({ token: Type.String() }) },
  async ({ query }, { registrationTokens }) => ({ valid: await registrationTokens.isValid(query.token) }),
)

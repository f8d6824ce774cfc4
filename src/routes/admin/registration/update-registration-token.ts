import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { TokenBounds } from './token-bounds.ts'

export const updateRegistrationToken = endpoint(
  'PUT /_synapse/admin/v1/registration_tokens/{token}',
  { auth: 'admin', body: Type.Object(TokenBounds) },
  ({ params, body }, { admin }) => admin.registrationTokens.update(params.token, body),
)

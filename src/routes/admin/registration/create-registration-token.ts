import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { TokenBounds } from './token-bounds.ts'

const Body = Type.Object({
  token: Type.Optional(Type.String()),
  length: Type.Optional(Type.Integer({ minimum: 1, maximum: 64 })),
  ...TokenBounds,
})

export const createRegistrationToken = endpoint(
  'POST /_synapse/admin/v1/registration_tokens/new',
  { auth: 'admin', body: Body },
  ({ body }, { admin }) => admin.registrationTokens.create(body),
)

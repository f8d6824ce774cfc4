import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { IDENTITY_TOKEN_KEYS, LookQuery, tokenRequestOf } from './token-request.ts'

const Body = Type.Object({ ...IDENTITY_TOKEN_KEYS, email: Type.String() })

export const emailRequestTokenV1 = endpoint(
  'POST P1/validate/email/requestToken',
  { auth: 'none', query: LookQuery, body: Body, forms: true },
  async (request, { identity }) => ({
    sid: await identity.sessions.requestEmail(request.body.email, tokenRequestOf(request)),
  }),
)

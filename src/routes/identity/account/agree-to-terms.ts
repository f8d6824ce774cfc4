import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({ user_accepts: Type.Array(Type.String()) })

export const agreeToTerms = endpoint(
  'POST P2/terms',
  { auth: 'identity', beforeTerms: true, body: Body },
  async ({ requester, body }, { identity }) => {
    await identity.terms.accept(requester.userId, body.user_accepts)
    return {}
  },
)

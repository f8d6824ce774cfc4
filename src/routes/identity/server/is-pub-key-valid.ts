import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({ public_key: Type.String() })

export const isPubKeyValid = endpoint(
  'GET P2/pubkey/isvalid',
  { auth: 'none', query: Query, also: ['P1/pubkey/isvalid'] },
  ({ query }, { identity }) => ({ valid: identity.keys.isValid(query.public_key) }),
)

import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({ public_key: Type.String() })

export const isEphemeralPubKeyValid = endpoint(
  'GET P2/pubkey/ephemeral/isvalid',
  { auth: 'none', query: Query, also: ['P1/pubkey/ephemeral/isvalid'] },
  async ({ query }, { identity }) => ({ valid: await identity.keys.isValidEphemeral(query.public_key) }),
)

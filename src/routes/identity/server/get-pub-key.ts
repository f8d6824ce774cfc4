import { ProtocolError } from '../../../core/errors.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const getPubKey = endpoint(
  'GET P2/pubkey/{keyId}',
  { auth: 'none', also: ['P1/pubkey/{keyId}'] },
  ({ params }, { identity }) => {
    const publicKey = identity.keys.publicKeyOf(params.keyId)
    if (publicKey === undefined) throw new ProtocolError('M_NOT_FOUND', 'There is no such key here.')
    return { public_key: publicKey }
  },
)

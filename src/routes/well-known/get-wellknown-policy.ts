import { ProtocolError } from '../../core/errors.ts'
import { endpoint } from '../../http/endpoint.ts'

export const getWellknownPolicy = endpoint(
  'GET /.well-known/{root}/policy_server',
  { auth: 'none' },
  (_request, { config }) => {
    const { policy_server_key: key } = config.well_known
    if (key === undefined) throw new ProtocolError('M_NOT_FOUND', 'There is no policy server under this name.')
    return { public_keys: { ed25519: key } }
  },
)

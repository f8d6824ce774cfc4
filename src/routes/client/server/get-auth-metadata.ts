import { ProtocolError } from '../../../core/errors.ts'
import { serverMetadata, whyNotServed } from '../../../domain/oauth/addresses.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'

export const getAuthMetadata = endpoint(
  'GET C1/auth_metadata',
  { auth: 'none', limited: 'other', also: ['CU/org.matrix.msc2965/auth_metadata'] },
  async ({ isForwarded }, { config, oauth, registration }) => {
    if (!oauth.isServed) throw new ProtocolError('M_UNRECOGNIZED', whyNotServed(config))
    const metadata = serverMetadata(config, await registration.isPossible(isForwarded))
    return rawReply({ headers: { 'cache-control': 'public, max-age=3600' }, body: JSON.stringify(metadata) })
  },
)

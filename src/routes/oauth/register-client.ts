import { ClientMetadataError } from '../../core/oauth/client-metadata.ts'
import { MAX_CLIENT_METADATA_BYTES } from '../../domain/limits/oauth.ts'
import { networkOf } from '../../domain/network.ts'
import { AnyObject, endpoint } from '../../http/endpoint.ts'
import { clientAnswer, oauthError } from './answer.ts'

/** Dynamic client registration (RFC 7591; client-server API, "Client registration"). */
export const registerClient = endpoint(
  'POST /_hearth/oauth/register',
  { auth: 'none', limited: 'other', body: AnyObject },
  async ({ body, bodyBytes, ip }, { oauth }) => {
    if (bodyBytes > MAX_CLIENT_METADATA_BYTES) return oauthError('invalid_client_metadata', 'This is too long.', 413)
    try {
      const { clientId, metadata, createdAt } = await oauth.clients.register(body, networkOf(ip))
      // Whoever registers a client is about to use it.
      oauth.prepare()
      return clientAnswer({ client_id: clientId, client_id_issued_at: Math.floor(createdAt / 1000), ...metadata }, 201)
    } catch (error) {
      if (!(error instanceof ClientMetadataError)) throw error
      return oauthError(error.code, error.message)
    }
  },
)

import { ProtocolError } from '../../../core/errors.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { submitByLink } from './submit-token.ts'
import { LinkQuery } from './token-request.ts'

/** In the published interface this link works without an access token, like the link of a mail. */
export const msisdnSubmitTokenGet = endpoint(
  'GET P2/validate/msisdn/submitToken',
  { auth: 'identity-optional', query: LinkQuery },
  (request, services) => {
    if (request.dialect === 'proto' && request.requester === undefined) {
      throw new ProtocolError('M_UNAUTHORIZED', 'This needs an access token.')
    }
    return submitByLink(services, services.identity.sessions, 'msisdn', request)
  },
)

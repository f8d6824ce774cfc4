import { ProtocolError } from '../../../core/errors.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { submitByLink } from './submit-token.ts'
import { LinkQuery } from './token-request.ts'

/** Where the published interface is spoken, a link opens without an access token, as that of a mail does. */
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

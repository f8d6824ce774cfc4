import { ProtocolError } from '../../core/errors.ts'
import { brandOf } from '../../domain/public-address.ts'
import { endpoint } from '../../http/endpoint.ts'
import { submitByLink } from './submit-token.ts'
import { LinkQuery } from './token-request.ts'

/** Where the published interface is spoken, a link opens without an access token, as that of a mail does. */
export const msisdnSubmitTokenGet = endpoint(
  'GET P2/validate/msisdn/submitToken',
  { auth: 'identity-optional', query: LinkQuery },
  (request, { identity, config }) => {
    if (request.dialect === 'proto' && request.requester === undefined) {
      throw new ProtocolError('M_UNAUTHORIZED', 'This needs an access token.')
    }
    return submitByLink(identity.sessions, 'msisdn', request, brandOf(config))
  },
)

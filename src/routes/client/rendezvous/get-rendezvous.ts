import { ProtocolError } from '../../../core/errors.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { mustBeServed } from './access.ts'
import { expiresIn, sessionReply } from './json-session.ts'

/** A browser that is sent to it, instead of a client that asks, must not show what strangers have put there. */
export const getRendezvous = endpoint(
  'GET C1/rendezvous/{rendezvousId}',
  { auth: 'none', limited: 'other', also: ['CU/io.element.msc4388/rendezvous/{rendezvousId}'] },
  (request, { config, rendezvous, clock }) => {
    mustBeServed(config)
    if (request.header('sec-fetch-mode') === 'navigate' || request.header('sec-fetch-dest') === 'document') {
      throw new ProtocolError('M_FORBIDDEN', 'This address is for clients, not for people.')
    }
    const content = rendezvous.read(request.params.rendezvousId)
    const { data, token: sequence_token } = content
    return sessionReply({ data, sequence_token, expires_in_ms: expiresIn(content, clock.now()) })
  },
)

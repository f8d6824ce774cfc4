import { endpoint } from '../../../http/endpoint.ts'
import { mustBeServed } from './access.ts'
import { textReply, tokenIn } from './text-session.ts'

export const getTextRendezvous = endpoint(
  'GET CU/org.matrix.msc4108/rendezvous/{rendezvousId}',
  { auth: 'none', limited: 'other' },
  (request, { config, rendezvous }) => {
    mustBeServed(config)
    const content = rendezvous.read(request.params.rendezvousId)
    if (tokenIn(request.header('if-none-match')) === content.token) return textReply(304, content)
    return textReply(200, content, content.data, 'text/plain')
  },
)

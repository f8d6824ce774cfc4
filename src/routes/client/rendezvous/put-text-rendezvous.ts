import { ProtocolError } from '../../../core/errors.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { mustBeServed } from './access.ts'
import { textOf, textReply, tokenIn } from './text-session.ts'

export const putTextRendezvous = endpoint(
  'PUT CU/org.matrix.msc4108/rendezvous/{rendezvousId}',
  { auth: 'none', limited: 'other', streamed: true },
  async (request, { config, rendezvous }) => {
    mustBeServed(config)
    const seen = tokenIn(request.header('if-match'))
    if (seen === undefined) throw new ProtocolError('M_MISSING_PARAM', 'Say in If-Match which revision you have seen.')
    rendezvous.read(request.params.rendezvousId)
    const { isWritten, content } = rendezvous.write(request.params.rendezvousId, seen, await textOf(request))
    if (isWritten) return textReply(202, content)
    const error = 'The other device has written meanwhile. Read it first.'
    const body = { errcode: 'M_UNKNOWN', 'org.matrix.msc4108.errcode': 'M_CONCURRENT_WRITE', error }
    return textReply(412, content, JSON.stringify(body))
  },
)

import { ProtocolError } from '../../../core/errors.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { mustBeServed } from './access.ts'
import { sessionReply } from './json-session.ts'

export const updateRendezvous = endpoint(
  'PUT C1/rendezvous/{rendezvousId}',
  {
    auth: 'none',
    limited: 'other',
    also: ['CU/io.element.msc4388/rendezvous/{rendezvousId}'],
    body: Type.Object({ sequence_token: Type.String(), data: Type.String() }),
  },
  ({ params, body, uri }, { config, rendezvous }) => {
    mustBeServed(config)
    const { isWritten, content } = rendezvous.write(params.rendezvousId, body.sequence_token, body.data)
    // A client that has lost the answer repeats its request.
    if (isWritten || content.data === body.data) return sessionReply({ sequence_token: content.token })
    const errcode = uri.includes('/unstable/') ? 'IO_ELEMENT_MSC4388_CONCURRENT_WRITE' : 'M_CONCURRENT_WRITE'
    throw new ProtocolError(errcode, 'The other device has written meanwhile. Read it first.')
  },
)

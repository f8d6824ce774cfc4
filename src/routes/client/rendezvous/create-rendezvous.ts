import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { mustMayCreate } from './access.ts'
import { expiresIn, sessionReply } from './json-session.ts'

export const createRendezvous = endpoint(
  'POST C1/rendezvous',
  {
    auth: 'optional',
    guests: true,
    limited: 'other',
    also: ['CU/io.element.msc4388/rendezvous'],
    body: Type.Object({ data: Type.String() }),
  },
  ({ requester, body, ip }, { config, rendezvous, clock }) => {
    mustMayCreate(config, requester)
    const session = rendezvous.create(body.data, ip)
    const { id, token: sequence_token } = session
    return sessionReply({ id, sequence_token, expires_in_ms: expiresIn(session, clock.now()) })
  },
)

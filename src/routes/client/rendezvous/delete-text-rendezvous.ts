import { endpoint, rawReply } from '../../../http/endpoint.ts'
import { mustBeServed } from './access.ts'

export const deleteTextRendezvous = endpoint(
  'DELETE CU/org.matrix.msc4108/rendezvous/{rendezvousId}',
  { auth: 'none', limited: 'other' },
  ({ params }, { config, rendezvous }) => {
    mustBeServed(config)
    rendezvous.end(params.rendezvousId)
    return rawReply({ status: 204, body: '' })
  },
)

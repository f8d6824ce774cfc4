import { endpoint } from '../../../http/endpoint.ts'
import { mustBeServed } from './access.ts'

export const deleteRendezvous = endpoint(
  'DELETE C1/rendezvous/{rendezvousId}',
  { auth: 'none', limited: 'other', also: ['CU/io.element.msc4388/rendezvous/{rendezvousId}'] },
  ({ params }, { config, rendezvous }) => {
    mustBeServed(config)
    rendezvous.end(params.rendezvousId)
    return {}
  },
)

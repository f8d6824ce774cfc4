import { endpoint } from '../../../http/endpoint.ts'
import { mayCreate, mustBeServed } from './access.ts'

export const discoverRendezvous = endpoint(
  'GET C1/rendezvous',
  { auth: 'optional', guests: true, limited: 'other', also: ['CU/io.element.msc4388/rendezvous'] },
  ({ requester }, { config }) => {
    mustBeServed(config)
    return { create_available: mayCreate(config, requester) }
  },
)

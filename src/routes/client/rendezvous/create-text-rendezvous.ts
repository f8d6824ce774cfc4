import { publicBaseUrl } from '../../../domain/public-address.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { mustMayCreate } from './access.ts'
import { textOf, textReply } from './text-session.ts'

export const createTextRendezvous = endpoint(
  'POST CU/org.matrix.msc4108/rendezvous',
  { auth: 'optional', guests: true, limited: 'other', streamed: true },
  async (request, { config, rendezvous }) => {
    mustMayCreate(config, request.requester)
    const session = rendezvous.create(await textOf(request), request.ip)
    const base = (config.well_known.client_base_url ?? publicBaseUrl(config)).replace(/\/+$/, '')
    const url = `${base}/_${request.dialect}/client/unstable/org.matrix.msc4108/rendezvous/${session.id}`
    return textReply(201, session, JSON.stringify({ url }))
  },
)

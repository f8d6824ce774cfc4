import { Type } from '../../../core/shapes.ts'
import { networkOf } from '../../../domain/network.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({ medium: Type.String(), address: Type.String() })

export const lookupUserV1 = endpoint(
  'GET P1/lookup',
  { auth: 'none', query: Query },
  async ({ query, ip }, { identity }) => (await identity.lookup.association(query, networkOf(ip))) ?? {},
)

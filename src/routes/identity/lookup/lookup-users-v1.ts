import { Type } from '../../../core/shapes.ts'
import { networkOf } from '../../../domain/network.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Pair = Type.Unsafe<[string, string]>({ type: 'array', items: { type: 'string' }, minItems: 2, maxItems: 2 })
const Body = Type.Object({ threepids: Type.Array(Pair) })

export const lookupUsersV1 = endpoint(
  'POST P1/bulk_lookup',
  { auth: 'none', body: Body },
  async ({ body, ip }, { identity }) => ({
    threepids: await identity.lookup.usersOf(
      body.threepids.map(([medium, address]) => ({ medium, address })),
      networkOf(ip),
    ),
  }),
)

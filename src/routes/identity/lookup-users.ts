import type { UserId } from '../../core/ids.ts'
import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'

const Body = Type.Object({
  algorithm: Type.String(),
  pepper: Type.String(),
  addresses: Type.Array(Type.String()),
})

export const lookupUsers = endpoint(
  'POST P2/lookup',
  { auth: 'identity', body: Body },
  async ({ body, requester }, { identity }) => {
    // Without a prototype it is a table from the start: a plain object takes milliseconds for a thousand keys of their own.
    const mappings: Record<string, UserId> = Object.create(null)
    for (const [entry, user] of await identity.lookup.users(body, requester.userId)) mappings[entry] = user
    return { mappings }
  },
)

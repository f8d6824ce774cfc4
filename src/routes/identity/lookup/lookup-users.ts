import { Type } from '../../../core/shapes.ts'
import { encodeTexts } from '../../../core/signing/canonical-json.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'

const Body = Type.Object({
  algorithm: Type.String(),
  pepper: Type.String(),
  addresses: Type.Array(Type.String()),
})

export const lookupUsers = endpoint(
  'POST P2/lookup',
  { auth: 'identity', body: Body },
  async ({ body, requester }, { identity }) =>
    rawReply({ body: `{"mappings":${encodeTexts(await identity.lookup.users(body, requester.userId))}}` }),
)

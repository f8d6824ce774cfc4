import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { Opaque } from './token-request.ts'

const Query = Type.Object({ sid: Opaque, client_secret: Opaque })

export const getValidated3pidV1 = endpoint(
  'GET P1/3pid/getValidated3pid',
  { auth: 'none', query: Query },
  async ({ query }, { identity }) => {
    const proof = { sid: query.sid, clientSecret: query.client_secret }
    const { medium, address, validatedAt } = await identity.sessions.findValidated(proof)
    return { medium, address, validated_at: validatedAt }
  },
)

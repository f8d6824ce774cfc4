import { Type } from '../../../core/shapes.ts'
import { requireFeatures } from '../../../domain/admin/experimental-features.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Features = Type.Unsafe<Readonly<Record<string, boolean>>>({
  type: 'object',
  additionalProperties: { type: 'boolean' },
})

export const setExperimentalFeatures = endpoint(
  'PUT /_synapse/admin/v1/experimental_features/{userId}',
  { auth: 'admin', body: Type.Object({ features: Features }) },
  async ({ params, body }, { admin }) => {
    await admin.users.numberOf(params.userId)
    requireFeatures(body.features)
    return {}
  },
)

import { experimentalFeatures } from '../../../domain/admin/experimental-features.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const getExperimentalFeatures = endpoint(
  'GET /_synapse/admin/v1/experimental_features/{userId}',
  { auth: 'admin' },
  async ({ params }, { admin }) => {
    await admin.users.numberOf(params.userId)
    return { features: experimentalFeatures() }
  },
)

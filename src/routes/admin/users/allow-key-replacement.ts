import { endpoint } from '../../../http/endpoint.ts'

export const allowKeyReplacement = endpoint(
  'POST /_synapse/admin/v1/users/{userId}/_allow_cross_signing_replacement_without_uia',
  { auth: 'admin' },
  async ({ params }, { admin }) => ({
    updatable_without_uia_before_ms: await admin.terms.openKeys(params.userId),
  }),
)

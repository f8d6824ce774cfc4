import { endpoint } from '../../../http/endpoint.ts'

export const getRedaction = endpoint(
  'GET /_synapse/admin/v1/user/redact_status/{redactId}',
  { auth: 'admin' },
  ({ params }, { admin }) => admin.redactions.status(params.redactId),
)

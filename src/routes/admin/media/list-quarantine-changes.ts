import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const listQuarantineChanges = endpoint(
  'GET /_synapse/admin/v1/media/quarantine_changes',
  { auth: 'admin', query: Type.Object({ from: Type.Optional(Type.Integer({ minimum: 0 })) }) },
  ({ query }, { media }) => media.desk.quarantineChanges(query.from ?? 0),
)

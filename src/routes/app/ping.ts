import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'

export const ping = endpoint(
  'POST A/ping',
  { auth: 'hosted', body: Type.Object({ transaction_id: Type.Optional(Type.String()) }), bodyOptional: true },
  () => ({}),
)

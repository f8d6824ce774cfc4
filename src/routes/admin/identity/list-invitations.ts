import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({
  from: Type.Optional(Type.Integer({ minimum: 0 })),
  limit: Type.Optional(Type.Integer({ minimum: 1 })),
})

export const listInvitations = endpoint(
  'GET /_hearth/admin/v1/identity/invitations',
  { auth: 'admin', recorded: true, query: Query },
  ({ query }, { admin }) => admin.invitations.list(query),
)

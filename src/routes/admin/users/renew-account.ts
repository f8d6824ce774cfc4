import type { UserId } from '../../../core/ids.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({
  user_id: Type.Unsafe<UserId>({ type: 'string', format: 'user-id' }),
  expiration_ts: Type.Optional(Type.Integer({ minimum: 0 })),
  enable_renewal_emails: Type.Optional(Type.Boolean()),
})

export const renewAccount = endpoint(
  'POST /_synapse/admin/v1/account_validity/validity',
  { auth: 'admin', body: Body },
  async ({ body }, { admin }) => ({
    expiration_ts: await admin.terms.renew(body.user_id, body.expiration_ts),
  }),
)

import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { doneWith } from './account-page.ts'
import { whenSubmitted } from './signed-in.ts'

export const approveKeys = endpoint(
  'POST /_hearth/account/keys',
  { auth: 'none', limited: 'other', body: Type.Object({ form: Type.Optional(Type.String()) }), forms: true },
  (request, services) =>
    whenSubmitted(request, services, { proof: 'just now', next: '/_hearth/account/keys' }, async ({ session }) => {
      await services.keyApprovals.approve(session.userNid)
      return doneWith('keys_approved')
    }),
)

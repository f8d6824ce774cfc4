import { ProtocolError } from '../../core/errors.ts'
import { Type } from '../../core/shapes.ts'
import { accountSuspended } from '../../domain/accounts/requester.ts'
import { requesterOf } from '../../domain/oauth/own-account.ts'
import { endpoint } from '../../http/endpoint.ts'
import { accountPage, doneWith } from './account-page.ts'
import { whenSubmitted } from './signed-in.ts'

const Form = Type.Object({ form: Type.Optional(Type.String()), display_name: Type.Optional(Type.String()) })

export const changeProfile = endpoint(
  'POST /_hearth/account/profile',
  { auth: 'none', limited: 'other', body: Form, forms: true },
  (request, services) =>
    whenSubmitted(request, services, { proof: 'signed in', next: '/_hearth/account' }, async (owner) => {
      const name = request.body.display_name?.trim()
      try {
        if (owner.session.isSuspended) throw accountSuspended()
        await services.profiles.change(requesterOf(owner.session), { displayname: name || null })
        return doneWith('name_changed')
      } catch (error) {
        if (!(error instanceof ProtocolError) || error.status >= 500) throw error
        return accountPage(services, request, owner, { problem: error })
      }
    }),
)

import { ProtocolError } from '../../core/errors.ts'
import { Type } from '../../core/shapes.ts'
import { accountSuspended } from '../../domain/accounts/requester.ts'
import { requesterOf } from '../../domain/oauth/own-account.ts'
import { endpoint } from '../../http/endpoint.ts'
import { accountPage, doneWith } from './account-page.ts'
import { whenSubmitted } from './signed-in.ts'

export const removePicture = endpoint(
  'POST /_hearth/account/picture/remove',
  { auth: 'none', limited: 'other', body: Type.Object({ form: Type.Optional(Type.String()) }), forms: true },
  (request, services) =>
    whenSubmitted(request, services, { proof: 'signed in', next: '/_hearth/account' }, async (owner) => {
      try {
        if (owner.session.isSuspended) throw accountSuspended()
        await services.profiles.change(requesterOf(owner.session), { avatar_url: null })
        return doneWith('picture_removed')
      } catch (error) {
        if (!(error instanceof ProtocolError) || error.status >= 500) throw error
        return accountPage(services, request, owner, { problem: error })
      }
    }),
)

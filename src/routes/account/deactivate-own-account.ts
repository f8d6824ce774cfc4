import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { pageReply } from '../web/page.ts'
import { DEACTIVATION_PAGE, deactivationPage } from './deactivation-page.ts'
import { whenSubmitted } from './signed-in.ts'
import { noSessionCookie } from './visitor.ts'

const Form = Type.Object({
  form: Type.Optional(Type.String()),
  confirmation: Type.Optional(Type.String()),
  erase: Type.Optional(Type.String()),
})

export const deactivateOwnAccount = endpoint(
  'POST /_hearth/account/deactivate',
  { auth: 'none', limited: 'login', body: Form, forms: true },
  (request, services) =>
    whenSubmitted(request, services, { proof: 'just now', next: DEACTIVATION_PAGE }, async (owner) => {
      const { confirmation = '', erase } = request.body
      if (confirmation.trim() !== owner.session.userId) return deactivationPage(services, request, owner, true)
      const { userNid, userId } = owner.session
      await services.deactivation.deactivate({ userNid, userId }, { erase: erase === 'yes', idServer: undefined })
      const cookies = [noSessionCookie(services.config)]
      const { acceptLanguage } = request
      return pageReply(services, 'account-deactivated.page', {}, { acceptLanguage, cookies, isSecret: true })
    }),
)

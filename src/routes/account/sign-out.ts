import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { goTo } from '../oauth/answer.ts'
import { expiredFormPage, noSessionCookie, submittedBy } from './visitor.ts'

export const signOut = endpoint(
  'POST /_hearth/account/sign-out',
  { auth: 'none', limited: 'other', body: Type.Object({ form: Type.Optional(Type.String()) }), forms: true },
  async (request, services) => {
    const visitor = await submittedBy(request, services)
    if (visitor === undefined) return expiredFormPage(services, request)
    if (visitor.session !== undefined) await services.oauth.webSessions.signOut(visitor.secret)
    return goTo('/_hearth/account/sign-in', [noSessionCookie(services.config)])
  },
)

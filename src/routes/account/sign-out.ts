import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { noConsoleCookie } from '../console/console-session.ts'
import { goTo } from '../oauth/answer.ts'
import { cookieName, expiredFormPage, noSessionCookie, submittedBy } from './visitor.ts'

/** Also of the console, which opens with the same sign-in. */
export const signOut = endpoint(
  'POST /_hearth/account/sign-out',
  { auth: 'none', limited: 'other', body: Type.Object({ form: Type.Optional(Type.String()) }), forms: true },
  async (request, services) => {
    const visitor = await submittedBy(request, services)
    if (visitor === undefined) return expiredFormPage(services, request)
    const { oauth, config } = services
    if (visitor.session !== undefined) await oauth.webSessions.signOut(visitor.secret)
    const console = request.cookie(cookieName(config, 'console'))
    if (console !== undefined) await oauth.webSessions.signOut(console, 'console')
    return goTo('/_hearth/account/sign-in', [noSessionCookie(config), noConsoleCookie(config)])
  },
)

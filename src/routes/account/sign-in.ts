import { ProtocolError } from '../../core/errors.ts'
import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { goTo } from '../oauth/answer.ts'
import { signInPage } from './sign-in-page.ts'
import { expiredFormPage, ownPage, sessionCookie, submittedBy } from './visitor.ts'

const Form = Type.Object({
  form: Type.Optional(Type.String()),
  next: Type.Optional(Type.String()),
  username: Type.Optional(Type.String({ maxLength: 500 })),
  password: Type.Optional(Type.String()),
})

/** The browser gets a new secret: one that somebody planted before is worth nothing. */
export const signIn = endpoint(
  'POST /_hearth/account/sign-in',
  { auth: 'none', limited: 'login', body: Form, forms: true },
  async (request, services) => {
    const { oauth, config } = services
    const { username = '', password = '' } = request.body
    const next = ownPage(request.body.next)
    const visitor = await submittedBy(request, services)
    if (visitor === undefined) return expiredFormPage(services, request)
    try {
      const secret = await oauth.webSessions.signInByPassword(username.trim(), password, request.ip)
      if (visitor.session !== undefined) await oauth.webSessions.signOut(visitor.secret)
      return goTo(next, [sessionCookie(config, secret)])
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.status >= 500) throw error
      return signInPage(services, request, visitor, { next, username, problem: error })
    }
  },
)

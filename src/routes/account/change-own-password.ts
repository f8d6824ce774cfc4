import { ProtocolError } from '../../core/errors.ts'
import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { doneWith } from './account-page.ts'
import { PASSWORD_PAGE, passwordPage } from './password-page.ts'
import { whenSubmitted } from './signed-in.ts'
import { sessionCookie } from './visitor.ts'

const Form = Type.Object({
  form: Type.Optional(Type.String()),
  password: Type.Optional(Type.String()),
  new_password: Type.Optional(Type.String()),
  logout: Type.Optional(Type.String()),
})

/** All other browsers are signed out; this one stays. */
export const changeOwnPassword = endpoint(
  'POST /_hearth/account/password',
  { auth: 'none', limited: 'login', body: Form, forms: true },
  (request, services) =>
    whenSubmitted(request, services, { proof: 'signed in', next: PASSWORD_PAGE }, async (owner) => {
      const { oauth, config } = services
      const { password: present = '', new_password: password = '', logout } = request.body
      const wish = { present, password, endsSessions: logout === 'yes' }
      try {
        await oauth.ownAccount.changePassword(owner.session, wish, request.ip)
      } catch (error) {
        if (!(error instanceof ProtocolError) || error.status >= 500) throw error
        return passwordPage(services, request, owner, error)
      }
      await oauth.webSessions.signOutAll(owner.session.userNid)
      const secret = await oauth.webSessions.signIn(owner.session.userNid)
      return doneWith('password_changed', [sessionCookie(config, secret)])
    }),
)

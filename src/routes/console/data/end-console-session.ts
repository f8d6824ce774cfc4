import { endpoint, rawReply } from '../../../http/endpoint.ts'
import { noSessionCookie, sessionSecret } from '../../account/visitor.ts'
import { consoleOperator, noConsoleCookie } from '../console-session.ts'

/** Signs the browser out of the account page too: a proof given there a moment ago would open the console again. */
export const endConsoleSession = endpoint(
  'DELETE /_hearth/admin/v1/session',
  { auth: 'admin' },
  async (request, services) => {
    const { oauth, config } = services
    const operator = await consoleOperator(services, (name) => request.cookie(name))
    if (operator !== undefined) await oauth.webSessions.signOut(operator.secret, 'console')
    const secret = sessionSecret(request, config)
    if (secret !== undefined) await oauth.webSessions.signOut(secret)
    return rawReply({ headers: { 'set-cookie': [noConsoleCookie(config), noSessionCookie(config)] }, body: '{}' })
  },
)

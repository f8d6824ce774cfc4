import { endpoint, rawReply } from '../../../http/endpoint.ts'
import { consoleOperator, noConsoleCookie } from '../console-session.ts'

export const endConsoleSession = endpoint(
  'DELETE /_hearth/admin/v1/session',
  { auth: 'admin' },
  async (request, services) => {
    const operator = await consoleOperator(services, (name) => request.cookie(name))
    if (operator !== undefined) await services.oauth.webSessions.signOut(operator.secret, 'console')
    return rawReply({ headers: { 'set-cookie': [noConsoleCookie(services.config)] }, body: '{}' })
  },
)

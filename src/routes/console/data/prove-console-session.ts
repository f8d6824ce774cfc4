import { ProtocolError } from '../../../core/errors.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { consoleOperator } from '../console-session.ts'

/** Takes the administrator's password again before a grave act. Without one, they sign in again and come back to the page. */
export const proveConsoleSession = endpoint(
  'POST /_hearth/admin/v1/session/proof',
  { auth: 'admin', limited: 'login', body: Type.Object({ password: Type.String() }) },
  async (request, services) => {
    const operator = await consoleOperator(services, (name) => request.cookie(name))
    if (operator === undefined || operator.name !== request.requester.name) {
      throw new ProtocolError(
        'M_FORBIDDEN',
        'Only the console asks for a password again: a token needs no other proof.',
      )
    }
    const { password } = request.body
    await services.oauth.webSessions.proveByPassword(operator.secret, 'console', { password, address: request.ip })
    return {}
  },
)

import { ProtocolError } from '../../core/errors.ts'
import type { Services } from '../../domain/services.ts'
import { endpoint, type RawReply } from '../../http/endpoint.ts'
import type { EndpointRequest } from '../../http/request.ts'
import { signInAddress, visitorOf } from '../account/visitor.ts'
import { goTo } from '../oauth/answer.ts'
import { pageReply } from '../web/page.ts'
import { arrivalPage, CONSOLE, consolePage } from './console-page.ts'
import { consoleCookie, consoleOperator, consoleToken } from './console-session.ts'

/** Who comes without the console's session signs in on the account page, and gets one for the proof that they have just given there. */
export const showConsolePage = endpoint(
  'GET /_hearth/admin/',
  { auth: 'none', limited: 'other' },
  async (request, services) => {
    if (request.fetchSite === 'cross-site' || request.fetchSite === 'same-site') return arrivalPage()
    const operator = await consoleOperator(services, (name) => request.cookie(name))
    if (operator !== undefined) return pageFor(services, operator.name, operator.secret)
    return enter(request, services)
  },
)

async function pageFor(
  { admin, config, version }: Services,
  userId: string,
  secret: string,
  cookies: readonly string[] = [],
): Promise<RawReply> {
  const files = await admin.views.files.list()
  if (files === undefined) {
    throw new ProtocolError('M_NOT_FOUND', 'The console has not been built: run "npm run build", and try again.')
  }
  const facts = { token: consoleToken(secret), user_id: userId, server_name: config.server_name, version }
  return consolePage(files, facts, cookies)
}

async function enter(request: EndpointRequest, services: Services): Promise<RawReply> {
  const { admin, oauth, config } = services
  const { session } = await visitorOf(request, services)
  if (session === undefined || session.isLocked || !session.isRecent) return goTo(signInAddress(CONSOLE, {}))
  const { userId, userNid } = session
  const requester = { userId, userNid, deviceId: '', tokenNid: 0, isGuest: false }
  if (!(await admin.operators.isAdmin(requester))) {
    const look = { acceptLanguage: request.acceptLanguage, status: 403, isSecret: true } as const
    return pageReply(services, 'console-refused.page', { user_id: userId }, look)
  }
  const act = { actor: userId, act: `GET ${CONSOLE}`, target: userId }
  const secret = await admin.audit.record(act, () => oauth.webSessions.signIn(userNid, 'console'))
  return pageFor(services, userId, secret, [consoleCookie(config, secret)])
}

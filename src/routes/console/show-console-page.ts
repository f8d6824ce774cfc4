import { ProtocolError } from '../../core/errors.ts'
import type { Requester } from '../../domain/accounts/requester.ts'
import type { Services } from '../../domain/services.ts'
import { endpoint, type RawReply } from '../../http/endpoint.ts'
import type { EndpointRequest } from '../../http/request.ts'
import { signInAddress, visitorOf } from '../account/visitor.ts'
import { goTo } from '../oauth/answer.ts'
import { pageReply } from '../web/page.ts'
import { arrivalPage, CONSOLE, consolePage } from './console-page.ts'
import { type ConsoleOperator, consoleCookie, consoleOperator, consoleToken } from './console-session.ts'

/** Who comes without the console's session signs in on the account page, and gets one for the proof that they have just given there. */
export const showConsolePage = endpoint(
  'GET /_hearth/admin/',
  { auth: 'none', limited: 'other' },
  async (request, services) => {
    if (request.fetchSite === 'cross-site' || request.fetchSite === 'same-site') return arrivalPage()
    const operator = await consoleOperator(services, (name) => request.cookie(name))
    if (operator === undefined) return enter(request, services)
    if (!operator.isRecent) await renew(request, services, operator)
    return pageFor(services, operator.requester, operator.secret)
  },
)

/** Who has signed in again on the account page, and comes back, has proved who they are for the console too. */
async function renew(request: EndpointRequest, services: Services, operator: ConsoleOperator): Promise<void> {
  const { admin, oauth } = services
  const { session } = await visitorOf(request, services)
  if (session === undefined || session.userId !== operator.name || session.isLocked || !session.isRecent) return
  const act = { actor: operator.name, act: `GET ${CONSOLE}`, target: operator.name }
  await admin.audit.record(act, () => oauth.webSessions.prove(operator.secret, 'console', session.provenAt))
}

async function pageFor(
  { admin, config, version, logins }: Services,
  { userId, userNid }: Pick<Requester, 'userId' | 'userNid'>,
  secret: string,
  cookies: readonly string[] = [],
): Promise<RawReply> {
  const [files, proofs] = await Promise.all([admin.views.files.list(), logins.proofsOf(userNid)])
  if (files === undefined) {
    throw new ProtocolError('M_NOT_FOUND', 'The console has not been built: run "npm run build", and try again.')
  }
  const facts = {
    token: consoleToken(secret),
    user_id: userId,
    server_name: config.server_name,
    version,
    has_password: proofs.some((flow) => flow.includes('m.login.password')),
  }
  return consolePage(files, facts, cookies)
}

async function enter(request: EndpointRequest, services: Services): Promise<RawReply> {
  const { admin, oauth, config } = services
  const { session } = await visitorOf(request, services)
  if (session === undefined || session.isLocked || !session.isRecent) return goTo(signInAddress(CONSOLE, {}))
  const { userId, userNid, provenAt } = session
  const requester = { userId, userNid, deviceId: '', tokenNid: 0, isGuest: false }
  if (!(await admin.operators.isAdmin(requester))) {
    const look = { acceptLanguage: request.acceptLanguage, status: 403, isSecret: true } as const
    return pageReply(services, 'console-refused.page', { user_id: userId }, look)
  }
  const act = { actor: userId, act: `GET ${CONSOLE}`, target: userId }
  const secret = await admin.audit.record(act, () => oauth.webSessions.signIn(userNid, 'console', provenAt))
  return pageFor(services, session, secret, [consoleCookie(config, secret)])
}

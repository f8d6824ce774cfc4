import { ProtocolError } from '../../../core/errors.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import { networkOf } from '../../../domain/network.ts'
import type { Services } from '../../../domain/services.ts'
import { endpoint, type RawReply } from '../../../http/endpoint.ts'
import type { EndpointRequest } from '../../../http/request.ts'
import { goTo } from '../../oauth/answer.ts'
import { stagePage } from '../../web/fallback-page.ts'
import { FALLBACK_STAGES } from '../../web/fallback-stages.ts'
import { StageForm } from '../../web/submit-fallback.ts'
import { expiredFormPage, ownPage, sessionCookie, submittedBy } from '../visitor.ts'
import { dueStage, namePage, nextIn, REGISTER, stepsAddress } from './sign-up-steps.ts'

const Form = Type.Object({
  ...StageForm,
  form: Type.Optional(Type.String()),
  username: Type.Optional(Type.String({ maxLength: 255 })),
  password: Type.Optional(Type.String()),
  repeated: Type.Optional(Type.String()),
})

type Request = EndpointRequest<{ readonly next: string }, undefined, Static<typeof Form>>

export const submitSignUpStep = endpoint(
  'POST /_hearth/account/sign-up/{next}',
  { auth: 'none', limited: 'other', body: Form, forms: true },
  async (request, services) => {
    const { body, params } = request
    const { session } = body
    const next = ownPage(nextIn(params.next))
    if (request.fetchSite === 'cross-site') return expiredFormPage(services, request)
    const view = await services.interactiveAuth.look(session)
    if (view === undefined) return goTo(`/_hearth/account/sign-up?${new URLSearchParams({ next })}`)
    const due = dueStage(view, services)
    const stage = FALLBACK_STAGES.get(due ?? '')
    if (due === undefined || stage === undefined) return finish(request as Request, services, next)
    try {
      const fields = await stage.prepare?.(body, services, view, request)
      if (fields) return stagePage(stage, { session, view, problem: undefined, fields }, services, request)
      await services.interactiveAuth.submit(session, due, stage.auth(body, services, view))
      return goTo(stepsAddress(next, session))
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.status >= 500) throw error
      return stagePage(stage, { session, view, problem: error, fields: body }, services, request)
    }
  },
)

/** Makes the account, and signs the person in. */
async function finish(request: Request, services: Services, next: string): Promise<RawReply> {
  const { session, username = '', password = '', repeated } = request.body
  const visitor = await submittedBy(request, services)
  if (visitor === undefined) return expiredFormPage(services, request)
  try {
    services.rateLimits.take('registration', networkOf(request.ip))
    if (password !== repeated) throw new ProtocolError('M_INVALID_PARAM', 'The two passwords are not the same.')
    const secret = await makeAccount(request, services, username.trim().toLowerCase(), password)
    if (secret === undefined) return goTo(`/_hearth/account/sign-up?${new URLSearchParams({ next })}`)
    return goTo(next, [sessionCookie(services.config, secret)])
  } catch (error) {
    if (!(error instanceof ProtocolError) || error.status >= 500) throw error
    return namePage(services, request, visitor, { session, username, problem: error })
  }
}

/** Gives the secret of a browser that is signed in; undefined if the registration has ended meanwhile. */
async function makeAccount(
  { body: { session }, ip, userAgent, isForwarded }: Request,
  { registration, interactiveAuth, oauth }: Services,
  username: string,
  password: string,
): Promise<string | undefined> {
  const wish = { username, password, device: { deviceId: undefined, displayName: undefined }, guestToken: undefined }
  // Before the stages are used up.
  await registration.check(wish)
  const view = await interactiveAuth.look(session)
  const isDummy = view?.next.includes('m.login.dummy') === true
  const outcome = await interactiveAuth.advance({
    operation: REGISTER,
    requester: undefined,
    address: networkOf(ip),
    auth: { session, ...(isDummy && { type: 'm.login.dummy' }) },
    body: { username },
    flows: await registration.flows(isForwarded),
  })
  if ('challenge' in outcome) return undefined
  const { userId } = await registration.register({ ...wish, logsIn: false, from: { ip, userAgent } }, outcome.proof)
  return oauth.webSessions.signInAs(userId)
}

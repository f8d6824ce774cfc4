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
import { expiredFormPage, submittedBy } from '../visitor.ts'
import { isAddressProven, newPasswordPage, RESET_PAGE, RESET_STAGE, SET_PASSWORD } from './reset-steps.ts'

const Form = Type.Object({
  ...StageForm,
  form: Type.Optional(Type.String()),
  repeated: Type.Optional(Type.String()),
})

export const resetPassword = endpoint(
  'POST /_hearth/account/reset',
  { auth: 'none', limited: 'login', body: Form, forms: true },
  async (request, services) => {
    const { body } = request
    const { session } = body
    if (request.fetchSite === 'cross-site') return expiredFormPage(services, request)
    const view = await services.interactiveAuth.look(session)
    const stage = FALLBACK_STAGES.get(RESET_STAGE)
    if (view?.operation !== SET_PASSWORD || stage === undefined) return goTo(RESET_PAGE)
    if (isAddressProven(view)) return setPassword(request, services)
    try {
      const fields = await stage.prepare?.(body, services, view, request)
      if (fields) return stagePage(stage, { session, view, problem: undefined, fields }, services, request)
      await services.interactiveAuth.submit(session, RESET_STAGE, stage.auth(body, services, view))
      return goTo(`${RESET_PAGE}?${new URLSearchParams({ session })}`)
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.status >= 500) throw error
      return stagePage(stage, { session, view, problem: error, fields: body }, services, request)
    }
  },
)

async function setPassword(
  request: EndpointRequest<unknown, unknown, Static<typeof Form>>,
  services: Services,
): Promise<RawReply> {
  const { session, password = '', repeated } = request.body
  const visitor = await submittedBy(request, services)
  if (visitor === undefined) return expiredFormPage(services, request)
  try {
    if (password !== repeated) throw new ProtocolError('M_INVALID_PARAM', 'The two passwords are not the same.')
    // Before the proof is used up.
    services.passwords.checkNew(password)
    const outcome = await services.interactiveAuth.advance({
      operation: SET_PASSWORD,
      requester: undefined,
      address: networkOf(request.ip),
      auth: { session },
      // The session stands for this page alone; the password is not kept with it.
      body: { page: RESET_PAGE },
      flows: [[RESET_STAGE]],
    })
    if ('challenge' in outcome) return goTo(RESET_PAGE)
    await services.passwordChanges.change(undefined, outcome.proof, { password, logoutDevices: true })
    return goTo('/_hearth/account/sign-in')
  } catch (error) {
    if (!(error instanceof ProtocolError) || error.status >= 500) throw error
    return newPasswordPage(services, request, visitor, { session, problem: error })
  }
}

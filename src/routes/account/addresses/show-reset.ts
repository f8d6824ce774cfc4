import { Type } from '../../../core/shapes.ts'
import { networkOf } from '../../../domain/network.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { goTo } from '../../oauth/answer.ts'
import { stagePage } from '../../web/fallback-page.ts'
import { FALLBACK_STAGES } from '../../web/fallback-stages.ts'
import { visitorOf } from '../visitor.ts'
import { isAddressProven, newPasswordPage, RESET_PAGE, RESET_STAGE, SET_PASSWORD } from './reset-steps.ts'

/** For people who have forgotten their password: first their email address, and then, once they followed the link, a new one. */
export const showReset = endpoint(
  'GET /_hearth/account/reset',
  { auth: 'none', limited: 'other', query: Type.Object({ session: Type.Optional(Type.String()) }) },
  async (request, services) => {
    const { session } = request.query
    const view = session === undefined ? undefined : await services.interactiveAuth.look(session)
    const stage = FALLBACK_STAGES.get(RESET_STAGE)
    if (session === undefined || view === undefined || stage === undefined) {
      const outcome = await services.interactiveAuth.advance({
        operation: SET_PASSWORD,
        requester: undefined,
        address: networkOf(request.ip),
        auth: undefined,
        body: {},
        flows: [[RESET_STAGE]],
      })
      const begun = 'challenge' in outcome ? String(outcome.challenge.session) : ''
      return goTo(`${RESET_PAGE}?${new URLSearchParams({ session: begun })}`)
    }
    if (isAddressProven(view))
      return newPasswordPage(services, request, await visitorOf(request, services), { session })
    return stagePage(stage, { session, view, problem: undefined, fields: {} }, services, request)
  },
)

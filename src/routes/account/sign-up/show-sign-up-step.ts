import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { goTo } from '../../oauth/answer.ts'
import { stagePage } from '../../web/fallback-page.ts'
import { FALLBACK_STAGES } from '../../web/fallback-stages.ts'
import { ownPage, visitorOf } from '../visitor.ts'
import { dueStage, namePage, nextIn } from './sign-up-steps.ts'

export const showSignUpStep = endpoint(
  'GET /_hearth/account/sign-up/{next}',
  { auth: 'none', limited: 'other', query: Type.Object({ session: Type.Optional(Type.String()) }) },
  async (request, services) => {
    const { session = '' } = request.query
    const view = await services.interactiveAuth.look(session)
    if (view === undefined) {
      const next = ownPage(nextIn(request.params.next))
      return goTo(`/_hearth/account/sign-up?${new URLSearchParams({ next })}`)
    }
    const due = FALLBACK_STAGES.get(dueStage(view, services) ?? '')
    if (due === undefined) return namePage(services, request, await visitorOf(request, services), { session })
    return stagePage(due, { session, view, problem: undefined, fields: {} }, services, request)
  },
)

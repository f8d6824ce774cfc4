import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { expiredFormPage, signInAddress, submittedBy } from '../account/visitor.ts'
import { goTo } from './answer.ts'
import { endedPage } from './consent.ts'

const Form = Type.Object({ form: Type.Optional(Type.String()), decision: Type.Optional(Type.String()) })

export const decideConsent = endpoint(
  'POST /_hearth/oauth/consent/{id}',
  { auth: 'none', limited: 'other', body: Form, forms: true },
  async (request, services) => {
    const { id } = request.params
    const visitor = await submittedBy(request, services)
    if (visitor === undefined) return expiredFormPage(services, request)
    const { session } = visitor
    if (session === undefined) return goTo(signInAddress(`/_hearth/oauth/consent/${id}`, {}))
    const server = await services.oauth.server()
    const decision = request.body.decision === 'allow' ? { userNid: session.userNid } : ('denied' as const)
    const decided = await server.decide(request.header('cookie'), id, decision)
    if (decided === undefined) return endedPage(services, request)
    return goTo(`${decided.location}?${new URLSearchParams({ client: decided.clientId })}`)
  },
)

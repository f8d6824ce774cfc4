import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { goTo } from '../oauth/answer.ts'
import { codePage, confirmPage, decidedPage } from './link-pages.ts'
import { expiredFormPage, signInAddress, submittedBy } from './visitor.ts'

const Form = Type.Object({
  form: Type.Optional(Type.String()),
  user_code: Type.Optional(Type.String({ maxLength: 64 })),
  decision: Type.Optional(Type.String()),
})

/** First shows which device waits with a code, and then signs it in. Attempts are limited, so that codes cannot be guessed. */
export const linkDevice = endpoint(
  'POST /_hearth/account/link',
  { auth: 'none', limited: 'login', body: Form, forms: true },
  async (request, services) => {
    const { user_code: code = '', decision } = request.body
    const visitor = await submittedBy(request, services)
    if (visitor === undefined) return expiredFormPage(services, request)
    const { session } = visitor
    if (!session?.isRecent) return goTo(signInAddress('/_hearth/account/link', {}))
    if (decision === undefined) return confirmPage(services, request, visitor, code)
    const server = await services.oauth.server()
    const isAllowed = decision === 'allow'
    const isDone = await server.decideDevice(code, isAllowed ? { userNid: session.userNid } : 'denied')
    if (!isDone) return codePage(services, request, visitor, code)
    return decidedPage(services, request, isAllowed)
  },
)

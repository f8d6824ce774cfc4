import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { pageReply } from '../web/page.ts'
import { cookieOf, orFailurePage } from './browser.ts'
import { nameValues } from './pages.ts'

export const getSsoNamePage = endpoint(
  'GET /_hearth/sso/name',
  { auth: 'none', limited: 'other', query: Type.Object({ flow: Type.Optional(Type.String()) }) },
  (request, services) =>
    orFailurePage(services, request, async () => {
      const { singleSignOn, config } = services
      const { flow = '' } = request.query
      const choice = await singleSignOn.nameChoice(flow, cookieOf(request, config))
      const { acceptLanguage } = request
      return pageReply(services, 'sso-name.page', nameValues(flow, choice), { acceptLanguage, isSecret: true })
    }),
)

import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { cookieOf, orFailurePage, unstoredPage } from './browser.ts'
import { namePage } from './pages.ts'

export const getSsoNamePage = endpoint(
  'GET /_hearth/sso/name',
  { auth: 'none', limited: 'other', query: Type.Object({ flow: Type.Optional(Type.String()) }) },
  (request, { singleSignOn, config }) =>
    orFailurePage(config, async () => {
      const { flow = '' } = request.query
      const choice = await singleSignOn.nameChoice(flow, cookieOf(request, config))
      return unstoredPage(namePage(config.server_name, flow, choice))
    }),
)

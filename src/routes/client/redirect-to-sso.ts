import { SignInFailure } from '../../domain/sso/failure.ts'
import { endpoint } from '../../http/endpoint.ts'
import { loginAddress } from '../sso/addresses.ts'
import { beginLogin, returnAddressOf, SsoQuery } from '../sso/begin.ts'
import { orFailurePage, unstoredPage } from '../sso/browser.ts'
import { chooserPage } from '../sso/pages.ts'

export const redirectToSso = endpoint(
  'GET C/login/sso/redirect',
  { auth: 'none', limited: 'other', query: SsoQuery },
  (request, services) =>
    orFailurePage(services.config, async () => {
      const { config, singleSignOn } = services
      const [first, ...others] = singleSignOn.providers.values()
      if (first === undefined) throw new SignInFailure('unknown-provider')
      if (others.length === 0) return beginLogin(request, services, first.id)
      const redirectUrl = returnAddressOf(request.query)
      const choices = [first, ...others].map(({ id, name }) => {
        const query = { redirectUrl, action: request.query.action }
        return { name, address: loginAddress(config, id, query, request.dialect) }
      })
      return unstoredPage(chooserPage(config.server_name, redirectUrl, choices))
    }),
)

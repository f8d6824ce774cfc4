import { ACCOUNT_PATH } from '../../../domain/oauth/addresses.ts'
import { SignInFailure } from '../../../domain/sso/failure.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { loginAddress } from '../../sso/addresses.ts'
import { type Asked, beginLogin, returnAddressOf, SsoQuery } from '../../sso/begin.ts'
import { orFailurePage, sendOn } from '../../sso/browser.ts'
import { chooserValues } from '../../sso/pages.ts'
import { pageReply } from '../../web/page.ts'

export const redirectToSso = endpoint(
  'GET C/login/sso/redirect',
  { auth: 'none', limited: 'other', query: SsoQuery },
  (request, services) =>
    orFailurePage(services, request, async () => {
      const { config, singleSignOn, oauth } = services
      const [first, ...others] = singleSignOn.providers.values()
      if (first === undefined && oauth.isServed) return sendOn(pagesAddress(request.query), config)
      if (first === undefined) throw new SignInFailure('unknown-provider')
      if (others.length === 0) return beginLogin(request, services, first.id)
      const redirectUrl = returnAddressOf(request.query)
      const choices = [first, ...others].map(({ id, name }) => {
        const query = { redirectUrl, action: request.query.action }
        return { name, address: loginAddress(config, id, query, request.dialect) }
      })
      const { acceptLanguage } = request
      return pageReply(services, 'sso-choose.page', chooserValues(redirectUrl, choices), {
        acceptLanguage,
        isSecret: true,
      })
    }),
)

/** Where people sign in for a client, or make an account if it says so, in either spelling. */
function pagesAddress(query: Asked): string {
  const redirectUrl = returnAddressOf(query)
  const next = `${ACCOUNT_PATH}/continue?${new URLSearchParams({ redirectUrl })}`
  const action = query.action ?? query['org.matrix.msc3824.action'] ?? ''
  return action.toLowerCase() === 'register' ? `${ACCOUNT_PATH}/sign-up?${new URLSearchParams({ next })}` : next
}

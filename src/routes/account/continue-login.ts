import { nameOfAddress, withLoginToken } from '../../core/return-address.ts'
import { endpoint } from '../../http/endpoint.ts'
import { returnAddressOf, SsoQuery } from '../sso/begin.ts'
import { orFailurePage } from '../sso/browser.ts'
import { pageReply } from '../web/page.ts'
import { whenSignedIn } from './signed-in.ts'

/** Gives a login token to a client that logs people in by single sign-on, once they have signed in here and agree. */
export const continueLogin = endpoint(
  'GET /_hearth/account/continue',
  { auth: 'none', limited: 'login', query: SsoQuery },
  (request, services) =>
    orFailurePage(services, request, async () => {
      const returnTo = returnAddressOf(request.query)
      const next = `/_hearth/account/continue?${new URLSearchParams({ redirectUrl: returnTo })}`
      // The token becomes a session of a device, which an account page that was left open should not give away.
      return whenSignedIn(request, services, { proof: 'just now', next }, async ({ session }) => {
        const { token } = await services.loginTokens.issue(session.userNid)
        const values = {
          client: nameOfAddress(returnTo),
          // Query and fragment mean nothing to a person.
          client_address: returnTo.replace(/[?#].*$/s, ''),
          user_id: session.userId,
          link: withLoginToken(returnTo, token),
        }
        const { acceptLanguage } = request
        return pageReply(services, 'sso-continue.page', values, { acceptLanguage, isSecret: true })
      })
    }),
)

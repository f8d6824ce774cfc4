import { Type } from '../../core/shapes.ts'
import { SIGNED_IN_PATH } from '../../domain/oauth/addresses.ts'
import { publicBaseUrl } from '../../domain/public-address.ts'
import { endpoint } from '../../http/endpoint.ts'
import { CONSOLE } from '../console/console-page.ts'
import { goTo } from '../oauth/answer.ts'
import { cookieOf, orFailurePage, ssoCookie } from '../sso/browser.ts'
import { ownPage, proofFor, visitorOf } from './visitor.ts'

/** Sends a person to another service, to sign in there. The return belongs to this browser: nobody can be signed in by a link. */
export const beginProviderSignIn = endpoint(
  'GET /_hearth/account/provider/{provider}',
  { auth: 'none', limited: 'other', query: Type.Object({ next: Type.Optional(Type.String()) }) },
  (request, services) =>
    orFailurePage(services, request, async () => {
      const { singleSignOn, config } = services
      const visitor = await visitorOf(request, services)
      const next = ownPage(request.query.next)
      const query = new URLSearchParams({ next, proof: proofFor(visitor, `provider ${next}`) })
      const returnTo = `${publicBaseUrl(config)}${SIGNED_IN_PATH}?${query}`
      // Whoever is signed in and comes here has to prove again who they are, or wants another account. The console lets nobody in without.
      const isAgain = visitor.session !== undefined || next === CONSOLE
      const attempt = { providerId: request.params.provider, purpose: { kind: 'login', returnTo, isAgain } } as const
      const { location, browser } = await singleSignOn.begin(attempt, cookieOf(request, config))
      return goTo(location, [...visitor.cookies, ssoCookie(config, browser)])
    }),
)

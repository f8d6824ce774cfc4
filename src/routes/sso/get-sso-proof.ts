import { Type } from '../../core/shapes.ts'
import { SignInFailure } from '../../domain/sso/failure.ts'
import { endpoint } from '../../http/endpoint.ts'
import { cookieOf, orFailurePage, sendOn } from './browser.ts'

const Query = Type.Object({ session: Type.Optional(Type.String()), provider: Type.Optional(Type.String()) })

/** Redirects a browser to a provider, where the person authenticates again. */
export const getSsoProof = endpoint(
  'GET /_hearth/sso/prove',
  { auth: 'none', limited: 'other', query: Query },
  (request, services) =>
    orFailurePage(services, request, async () => {
      const { singleSignOn, config } = services
      const { session = '', provider } = request.query
      const { providers } = await singleSignOn.demandOf(session)
      const chosen = providers.find(({ id }) => id === provider)
      if (chosen === undefined) throw new SignInFailure('unknown-provider')
      const attempt = { providerId: chosen.id, purpose: { kind: 'proof', session } } as const
      const begun = await singleSignOn.begin(attempt, cookieOf(request, config))
      return sendOn(begun.location, config, begun.browser)
    }),
)

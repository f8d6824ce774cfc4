import { endpoint } from '../../http/endpoint.ts'
import { donePage } from '../web/fallback-page.ts'
import { pageReply } from '../web/page.ts'
import { nameAddress } from './addresses.ts'
import { cookieOf, orFailurePage, sendOn } from './browser.ts'
import { confirmValues } from './pages.ts'

/** Providers redirect browsers to this path, which is registered with them. */
export const getSsoCallback = endpoint(
  'GET /_hearth/sso/callback',
  { auth: 'none', limited: 'other' },
  (request, services) =>
    orFailurePage(services, request, async () => {
      const { singleSignOn, config } = services
      const answer = new URLSearchParams(request.uri.split('?').slice(1).join('?'))
      const arrival = await singleSignOn.arrive(answer, cookieOf(request, config))
      if (arrival.kind === 'unnamed') return sendOn(nameAddress(config, arrival.flow), config)
      if (arrival.kind === 'proven') return donePage(services, request)
      if (arrival.isTrusted) return sendOn(arrival.location, config)
      const { acceptLanguage } = request
      return pageReply(services, 'sso-continue.page', confirmValues(arrival, false), { acceptLanguage, isSecret: true })
    }),
)

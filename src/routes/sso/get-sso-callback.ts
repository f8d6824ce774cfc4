import { endpoint } from '../../http/endpoint.ts'
import { donePage } from '../web/fallback-page.ts'
import { nameAddress } from './addresses.ts'
import { cookieOf, orFailurePage, sendOn, unstoredPage } from './browser.ts'
import { confirmPage } from './pages.ts'

/** Where providers send browsers back to; the path is registered with them. */
export const getSsoCallback = endpoint(
  'GET /_hearth/sso/callback',
  { auth: 'none', limited: 'other' },
  (request, services) =>
    orFailurePage(services.config, async () => {
      const { singleSignOn, config } = services
      const answer = new URLSearchParams(request.uri.split('?').slice(1).join('?'))
      const arrival = await singleSignOn.arrive(answer, cookieOf(request, config))
      if (arrival.kind === 'unnamed') return sendOn(nameAddress(config, arrival.flow), config)
      if (arrival.kind === 'proven') return donePage(services)
      if (arrival.isTrusted) return sendOn(arrival.location, config)
      return unstoredPage(confirmPage(config.server_name, arrival, false))
    }),
)

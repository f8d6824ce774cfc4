import { publicBaseUrl } from '../../domain/public-address.ts'
import { endpoint, rawReply } from '../../http/endpoint.ts'
import { WELCOME_PAGE_POLICY, welcomePage } from './welcome-page.ts'

export const getWelcomePage = endpoint(
  'GET /',
  { auth: 'none' },
  ({ isForwarded }, { config, version, registration }) =>
    rawReply({
      headers: {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': WELCOME_PAGE_POLICY,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-cache',
      },
      body: welcomePage({
        serverName: config.server_name,
        baseUrl: config.well_known.client_base_url ?? publicBaseUrl(config),
        version,
        isRegistrationOpen: registration.isOpen(isForwarded),
      }),
    }),
)

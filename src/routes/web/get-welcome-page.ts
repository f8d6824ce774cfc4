import { publicBaseUrl } from '../../domain/public-address.ts'
import { endpoint } from '../../http/endpoint.ts'
import { pageReply } from './page.ts'
import { welcomePage } from './welcome-page.ts'

export const getWelcomePage = endpoint(
  'GET /',
  { auth: 'none' },
  ({ isForwarded }, { config, version, registration }) =>
    pageReply(
      welcomePage({
        serverName: config.server_name,
        baseUrl: config.well_known.client_base_url ?? publicBaseUrl(config),
        version,
        isRegistrationOpen: registration.isOpen(isForwarded),
      }),
    ),
)

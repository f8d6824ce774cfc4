import { publicBaseUrl } from '../../domain/public-address.ts'
import { endpoint } from '../../http/endpoint.ts'
import { pageReply } from './page.ts'

/** The page at the server's address in a browser. */
export const getWelcomePage = endpoint('GET /', { auth: 'none' }, ({ isForwarded, acceptLanguage }, services) => {
  const { config, version, registration } = services
  const address = config.well_known.client_base_url ?? publicBaseUrl(config)
  const is_open = registration.isOpen(isForwarded) ? 'yes' : ''
  return pageReply(services, 'welcome.page', { address, version, is_open }, { acceptLanguage })
})

import { publicBaseUrl } from '../../domain/public-address.ts'
import { endpoint } from '../../http/endpoint.ts'

export const getWellknown = endpoint(
  'GET /.well-known/{root}/client',
  { auth: 'none' },
  (_request, { config, calls }) => {
    const { client_base_url, identity_server_base_url } = config.well_known
    return {
      'm.homeserver': { base_url: client_base_url ?? publicBaseUrl(config) },
      ...(identity_server_base_url && { 'm.identity_server': { base_url: identity_server_base_url } }),
      ...(calls.rtc.transports.length > 0 && { 'org.matrix.msc4143.rtc_foci': calls.rtc.transports }),
    }
  },
)

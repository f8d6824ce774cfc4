import { endpoint } from '../../../http/endpoint.ts'
import { beginLogin, SsoQuery } from '../../sso/begin.ts'
import { orFailurePage } from '../../sso/browser.ts'

export const redirectToIdp = endpoint(
  'GET C/login/sso/redirect/{idpId}',
  { auth: 'none', limited: 'other', query: SsoQuery },
  (request, services) => orFailurePage(services, request, () => beginLogin(request, services, request.params.idpId)),
)

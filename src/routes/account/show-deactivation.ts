import { endpoint } from '../../http/endpoint.ts'
import { DEACTIVATION_PAGE, deactivationPage } from './deactivation-page.ts'
import { whenSignedIn } from './signed-in.ts'

export const showDeactivation = endpoint(
  'GET /_hearth/account/deactivate',
  { auth: 'none', limited: 'other' },
  (request, services) =>
    whenSignedIn(request, services, { proof: 'just now', next: DEACTIVATION_PAGE }, (owner) =>
      deactivationPage(services, request, owner, false),
    ),
)

import { endpoint } from '../../http/endpoint.ts'
import { PASSWORD_PAGE, passwordPage } from './password-page.ts'
import { whenSignedIn } from './signed-in.ts'

export const showPassword = endpoint(
  'GET /_hearth/account/password',
  { auth: 'none', limited: 'other' },
  (request, services) =>
    whenSignedIn(request, services, { proof: 'signed in', next: PASSWORD_PAGE }, (owner) =>
      passwordPage(services, request, owner),
    ),
)

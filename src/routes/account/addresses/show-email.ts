import { endpoint } from '../../../http/endpoint.ts'
import { whenSignedIn } from '../signed-in.ts'
import { EMAIL_PAGE, emailPage } from './email-page.ts'

export const showEmail = endpoint(
  'GET /_hearth/account/email',
  { auth: 'none', limited: 'other' },
  (request, services) =>
    whenSignedIn(request, services, { proof: 'just now', next: EMAIL_PAGE }, (owner) =>
      emailPage(services, request, owner),
    ),
)

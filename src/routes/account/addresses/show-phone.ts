import { endpoint } from '../../../http/endpoint.ts'
import { goTo } from '../../oauth/answer.ts'
import { whenSignedIn } from '../signed-in.ts'
import { canAddPhone, PHONE_PAGE, phonePage } from './phone-page.ts'

export const showPhone = endpoint(
  'GET /_hearth/account/phone',
  { auth: 'none', limited: 'other' },
  (request, services) =>
    whenSignedIn(request, services, { proof: 'just now', next: PHONE_PAGE }, (owner) =>
      canAddPhone(services.config) ? phonePage(services, request, owner) : goTo('/_hearth/account'),
    ),
)

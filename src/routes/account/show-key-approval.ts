import { endpoint } from '../../http/endpoint.ts'
import { pageReply } from '../web/page.ts'
import { whenSignedIn } from './signed-in.ts'
import { visitorForm } from './visitor.ts'

const KEYS = '/_hearth/account/keys'

export const showKeyApproval = endpoint(
  'GET /_hearth/account/keys',
  { auth: 'none', limited: 'other' },
  (request, services) =>
    whenSignedIn(request, services, { proof: 'just now', next: KEYS }, (owner) => {
      const { acceptLanguage } = request
      const values = { form: visitorForm(owner, {}, KEYS), user_id: owner.session.userId }
      return pageReply(services, 'account-keys.page', values, { acceptLanguage, isSecret: true })
    }),
)

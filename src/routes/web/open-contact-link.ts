import { endpoint } from '../../http/endpoint.ts'
import { submitByLink } from '../identity/validation/submit-token.ts'
import { LinkQuery, wholeLink } from '../identity/validation/token-request.ts'
import { mediumIn, purposeIn } from './contact-path.ts'
import { openForm } from './form.ts'
import { pageReply } from './page.ts'

/**
 * The link in a mail of this homeserver. Mail scanners open links too. If the link allows a new password, a person must confirm it on the
 * page.
 */
export const openContactLink = endpoint(
  'GET CU/hearth/validate/{purpose}/{medium}/submitToken',
  { auth: 'none', query: LinkQuery },
  ({ params, query, acceptLanguage }, services) => {
    const [purpose, medium] = [purposeIn(params), mediumIn(params)]
    const sent = wholeLink(query)
    if (purpose === 'password' && sent !== undefined) {
      const form = openForm(sent, { action: 'confirm' })
      return pageReply(services, 'new-password.page', { form }, { acceptLanguage, isSecret: true })
    }
    return submitByLink(services, services.contactSessions.of(purpose), medium, { query, acceptLanguage })
  },
)

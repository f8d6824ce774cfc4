import { preferredLanguages } from '../../core/languages.ts'
import { brandOf } from '../../domain/public-address.ts'
import { endpoint } from '../../http/endpoint.ts'
import { submitByLink, unstored } from '../identity/submit-token.ts'
import { LinkQuery, wholeLink } from '../identity/token-request.ts'
import { confirmationPage } from './confirmation-page.ts'
import { mediumIn, purposeIn } from './contact-path.ts'
import { pageReply } from './page.ts'

/**
 * The link in a mail of this homeserver. Programs that look through mails open links too: where that would let somebody else set a
 * new password, a person has to confirm it.
 */
export const openContactLink = endpoint(
  'GET CU/hearth/validate/{purpose}/{medium}/submitToken',
  { auth: 'none', query: LinkQuery },
  ({ params, query, acceptLanguage }, { contactSessions, config }) => {
    const [purpose, medium] = [purposeIn(params), mediumIn(params)]
    const brand = brandOf(config)
    const sent = wholeLink(query)
    if (purpose === 'password' && sent !== undefined) {
      return unstored(pageReply(confirmationPage(sent, brand, preferredLanguages(acceptLanguage))))
    }
    return submitByLink(contactSessions.of(purpose), medium, { query, acceptLanguage }, brand)
  },
)

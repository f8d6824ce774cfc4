import { brandOf } from '../../domain/public-address.ts'
import { endpoint } from '../../http/endpoint.ts'
import { submitByLink } from '../identity/submit-token.ts'
import { Submission } from '../identity/token-request.ts'
import { mediumIn, purposeIn } from './contact-path.ts'

/** The form of the page that a link in a mail leads to. */
export const confirmContact = endpoint(
  'POST CU/hearth/validate/{purpose}/{medium}/confirm',
  { auth: 'none', body: Submission, forms: true },
  ({ params, body, acceptLanguage }, { contactSessions, config }) => {
    const sessions = contactSessions.of(purposeIn(params))
    return submitByLink(sessions, mediumIn(params), { query: body, acceptLanguage }, brandOf(config), 'by form')
  },
)

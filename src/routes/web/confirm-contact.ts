import { endpoint } from '../../http/endpoint.ts'
import { submitByLink } from '../identity/validation/submit-token.ts'
import { Submission } from '../identity/validation/token-request.ts'
import { mediumIn, purposeIn } from './contact-path.ts'

/** The form of the page that a link in a mail leads to. */
export const confirmContact = endpoint(
  'POST CU/hearth/validate/{purpose}/{medium}/confirm',
  { auth: 'none', body: Submission, forms: true },
  ({ params, body, acceptLanguage }, services) => {
    const sessions = services.contactSessions.of(purposeIn(params))
    return submitByLink(services, sessions, mediumIn(params), { query: body, acceptLanguage }, 'by form')
  },
)

import { endpoint } from '../../http/endpoint.ts'
import { submitToken } from '../identity/validation/submit-token.ts'
import { Submission } from '../identity/validation/token-request.ts'
import { mediumIn, purposeIn } from './contact-path.ts'

/** Takes the tokens of this homeserver's own validation sessions. Its address is the `submit_url`, which every server chooses itself. */
export const submitContactToken = endpoint(
  'POST CU/hearth/validate/{purpose}/{medium}/submitToken',
  { auth: 'none', body: Submission, forms: true },
  ({ params, body }, { contactSessions }) => submitToken(contactSessions.of(purposeIn(params)), mediumIn(params), body),
)

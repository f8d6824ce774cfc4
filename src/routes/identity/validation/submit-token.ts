import { type Errcode, ProtocolError } from '../../../core/errors.ts'
import type { Static } from '../../../core/shapes.ts'
import type { Medium } from '../../../core/threepid.ts'
import type { ValidationSessions } from '../../../domain/identity/sessions.ts'
import type { Services } from '../../../domain/services.ts'
import { type RawReply, rawReply } from '../../../http/endpoint.ts'
import { pageReply } from '../../web/page.ts'
import { type LinkQuery, type Submission, wholeLink } from './token-request.ts'

type Sent = Static<typeof Submission>

/** The answer to a program that submits a token. */
export async function submitToken(
  sessions: ValidationSessions,
  medium: Medium,
  { sid, client_secret: clientSecret, token }: Sent,
): Promise<object> {
  try {
    await sessions.submit(medium, { sid, clientSecret }, token)
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    throw new ProtocolError(error.errcode, error.message, {
      status: error.status,
      extra: { success: false, ...error.extra },
    })
  }
  return { success: true }
}

const PAGES: Partial<Record<Errcode, 'link-wrong.page' | 'link-expired.page'>> = {
  M_TOKEN_INCORRECT: 'link-wrong.page',
  M_SESSION_EXPIRED: 'link-expired.page',
}

/** The answer to a person who opens the link of a message, even a truncated link: a page, or a redirect to `next_link`. */
export async function submitByLink(
  services: Services,
  sessions: ValidationSessions,
  medium: Medium,
  request: { readonly query: Static<typeof LinkQuery>; readonly acceptLanguage: string | undefined },
  how: 'by link' | 'by form' = 'by link',
): Promise<RawReply> {
  const { acceptLanguage } = request
  const confirmed = (nextLink?: string): RawReply =>
    pageReply(
      services,
      'link-confirmed.page',
      { [medium]: 'yes', next_link: nextLink },
      { acceptLanguage, isSecret: true },
    )
  const failed = ({ errcode, status }: ProtocolError): RawReply =>
    pageReply(
      services,
      PAGES[errcode] ?? 'link-unknown.page',
      { [medium]: 'yes', errcode },
      { status, acceptLanguage, isSecret: true },
    )
  const sent = wholeLink(request.query)
  if (sent === undefined) return failed(new ProtocolError('M_MISSING_PARAMS', 'The link was cut off.'))
  try {
    const { sid, client_secret: clientSecret, token } = sent
    const { nextLink } = await sessions.submit(medium, { sid, clientSecret }, token)
    // The answer to a form cannot redirect to another site: the form's page forbids it.
    return nextLink === undefined || how === 'by form' ? confirmed(nextLink) : redirect(confirmed(), nextLink)
  } catch (error) {
    if (error instanceof ProtocolError && error.status < 500) return failed(error)
    throw error
  }
}

function redirect({ headers, body }: RawReply, location: string): RawReply {
  return rawReply({ status: 302, headers: { ...headers, location }, body })
}

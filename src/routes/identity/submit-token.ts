import { ProtocolError } from '../../core/errors.ts'
import { preferredLanguages } from '../../core/languages.ts'
import type { Static } from '../../core/shapes.ts'
import type { Medium } from '../../core/threepid.ts'
import type { ValidationSessions } from '../../domain/identity/sessions.ts'
import { type RawReply, rawReply } from '../../http/endpoint.ts'
import { pageReply } from '../web/page.ts'
import { submissionPage } from './submission-page.ts'
import { type LinkQuery, type Submission, wholeLink } from './token-request.ts'

type Sent = Static<typeof Submission>

/** What a program gets that submits a token. */
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

/** What a person gets who opens the link of a message, also one that was cut off: a page, or the way to where it was asked for. */
export async function submitByLink(
  sessions: ValidationSessions,
  medium: Medium,
  request: { readonly query: Static<typeof LinkQuery>; readonly acceptLanguage: string | undefined },
  brand: string,
  how: 'by link' | 'by form' = 'by link',
): Promise<RawReply> {
  const page = (error?: ProtocolError, nextLink?: string): RawReply =>
    unstored(pageReply(submissionPage(medium, brand, preferredLanguages(request.acceptLanguage), { error, nextLink })))
  const sent = wholeLink(request.query)
  if (sent === undefined) return page(new ProtocolError('M_MISSING_PARAMS', 'The link was cut off.'))
  try {
    const { sid, client_secret: clientSecret, token } = sent
    const { nextLink } = await sessions.submit(medium, { sid, clientSecret }, token)
    // What answers a form cannot lead elsewhere by itself: the form's page forbids it.
    return nextLink === undefined || how === 'by form' ? page(undefined, nextLink) : redirect(page(), nextLink)
  } catch (error) {
    if (error instanceof ProtocolError && error.status < 500) return page(error)
    throw error
  }
}

/** The address of such a page is a secret, so that neither the page nor where it came from is kept. */
export function unstored({ status, headers, body }: RawReply): RawReply {
  return rawReply({ status, headers: { ...headers, 'cache-control': 'no-store' }, body })
}

function redirect({ headers, body }: RawReply, location: string): RawReply {
  return rawReply({ status: 302, headers: { ...headers, location }, body })
}

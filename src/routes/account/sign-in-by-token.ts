import { hash } from 'node:crypto'
import { ProtocolError } from '../../core/errors.ts'
import { Type } from '../../core/shapes.ts'
import { RECENT_PROOF_MS } from '../../domain/limits/oauth.ts'
import type { Services } from '../../domain/services.ts'
import { endpoint, type RawReply } from '../../http/endpoint.ts'
import type { EndpointRequest } from '../../http/request.ts'
import { goTo } from '../oauth/answer.ts'
import { openForm } from '../web/form.ts'
import { pageReply } from '../web/page.ts'
import { signInPage } from './sign-in-page.ts'
import { cookieName, isProofFor, ownPage, proofFor, sessionCookie, setCookie, visitorOf } from './visitor.ts'

const Form = Type.Object({
  token: Type.String(),
  next: Type.Optional(Type.String()),
  proof: Type.Optional(Type.String()),
})

const ACTION = '/_hearth/account/token'
/** A browser sends no other cookie with the form of another site. */
const COOKIE = 'portal'
const useOf = (token: string, next: string) => `token ${hash('sha256', token)} ${next}`

/**
 * Signs a person in by a token of a service of the operator, which that service sends here by a form. A person is asked first: anybody
 * could send a browser a token of their own.
 */
export const signInByToken = endpoint(
  `POST ${ACTION}`,
  { auth: 'none', limited: 'login', body: Form, forms: true },
  async (request, services) => {
    const { jwtLogins, oauth, config } = services
    const { token, proof } = request.body
    const next = ownPage(request.body.next)
    try {
      const { subject, madeAt } = await jwtLogins.look(token)
      const secret = request.cookie(cookieName(config, COOKIE))
      const isOwn = request.fetchSite !== 'cross-site' && request.fetchSite !== 'same-site'
      if (!isOwn || secret === undefined || !isProofFor({ secret }, useOf(token, next), proof)) {
        return askPage(request, services, { token, next, subject })
      }
      const session = await oauth.webSessions.signInByProof(await jwtLogins.ownerOf(token), madeAt)
      const visitor = await visitorOf(request, services)
      if (visitor.session !== undefined) await oauth.webSessions.signOut(visitor.secret)
      return goTo(next, [sessionCookie(config, session), setCookie(config, COOKIE, '', 0)])
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.status >= 500) throw error
      const visitor = await visitorOf(request, services)
      return signInPage(services, request, visitor, { next, username: '', problem: worded(error) })
    }
  },
)

/** The page has words about passwords for this one. */
const worded = (error: ProtocolError): ProtocolError =>
  error.errcode === 'M_FORBIDDEN' ? new ProtocolError('M_UNAUTHORIZED', error.message) : error

function askPage(
  { acceptLanguage }: Pick<EndpointRequest, 'acceptLanguage'>,
  services: Services,
  { token, next, subject }: { readonly token: string; readonly next: string; readonly subject: string },
): RawReply {
  const secret = services.oauth.webSessions.newSecret()
  const form = openForm({ token, next, proof: proofFor({ secret }, useOf(token, next)) }, { action: ACTION })
  const cookies = [setCookie(services.config, COOKIE, secret, RECENT_PROOF_MS)]
  return pageReply(services, 'account-token.page', { form, name: subject }, { acceptLanguage, isSecret: true, cookies })
}

import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { goTo } from '../oauth/answer.ts'
import { expiredFormPage, isProofFor, ownPage, sessionCookie, visitorOf } from './visitor.ts'

const Query = Type.Object({
  next: Type.Optional(Type.String()),
  proof: Type.Optional(Type.String()),
  loginToken: Type.Optional(Type.String()),
})

/** People come back here after they signed in at another service. */
export const finishProviderSignIn = endpoint(
  'GET /_hearth/account/signed-in',
  { auth: 'none', limited: 'login', query: Query },
  async (request, services) => {
    const { oauth, config } = services
    const { proof, loginToken = '' } = request.query
    const next = ownPage(request.query.next)
    const visitor = await visitorOf(request, services)
    if (!isProofFor(visitor, `provider ${next}`, proof)) return expiredFormPage(services, request)
    const secret = await oauth.webSessions.signInByToken(loginToken)
    if (visitor.session !== undefined) await oauth.webSessions.signOut(visitor.secret)
    return goTo(next, [sessionCookie(config, secret)])
  },
)

import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { nameInHint, signInPage } from './sign-in-page.ts'
import { ownPage, visitorOf } from './visitor.ts'

const Query = Type.Object({
  next: Type.Optional(Type.String()),
  login_hint: Type.Optional(Type.String()),
  other: Type.Optional(Type.String()),
})

export const showSignIn = endpoint(
  'GET /_hearth/account/sign-in',
  { auth: 'none', limited: 'other', query: Query },
  async (request, services) => {
    const { next, login_hint, other } = request.query
    const shown = { next: ownPage(next), username: nameInHint(login_hint), isOther: other !== undefined }
    return signInPage(services, request, await visitorOf(request, services), shown)
  },
)

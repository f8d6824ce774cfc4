import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { goTo } from '../oauth/answer.ts'
import { codePage, confirmPage } from './link-pages.ts'
import { signInAddress, visitorOf } from './visitor.ts'

/** Where a person enters the code that another device shows, so that it is signed in. They must have signed in here just now. */
export const showLink = endpoint(
  'GET /_hearth/account/link',
  { auth: 'none', limited: 'other', query: Type.Object({ user_code: Type.Optional(Type.String({ maxLength: 64 })) }) },
  async (request, services) => {
    const { user_code: code } = request.query
    const visitor = await visitorOf(request, services)
    if (!visitor.session?.isRecent) {
      const query = code === undefined ? '' : `?${new URLSearchParams({ user_code: code })}`
      return goTo(signInAddress(`/_hearth/account/link${query}`, {}))
    }
    if (code === undefined) return codePage(services, request, visitor)
    services.rateLimits.take('login', visitor.session.userNid)
    return confirmPage(services, request, visitor, code)
  },
)

import { ProtocolError } from '../../core/errors.ts'
import { Type } from '../../core/shapes.ts'
import { SignInFailure } from '../../domain/sso/failure.ts'
import { endpoint } from '../../http/endpoint.ts'
import { pageReply } from '../web/page.ts'
import { cookieOf, orFailurePage } from './browser.ts'
import { confirmValues, nameValues } from './pages.ts'

const Form = Type.Object({ flow: Type.String(), username: Type.String() })

/** Creates the account if the browser's cookie fits the flow. A form on another site can send neither of them, and is refused. */
export const chooseSsoName = endpoint(
  'POST /_hearth/sso/name',
  { auth: 'none', limited: 'other', body: Form, forms: true },
  (request, services) =>
    orFailurePage(services, request, async () => {
      const { singleSignOn, config } = services
      const { acceptLanguage } = request
      if (request.fetchSite === 'cross-site') throw new SignInFailure('ended')
      const { flow } = request.body
      const username = request.body.username.trim()
      const browser = cookieOf(request, config)
      try {
        const signedIn = await singleSignOn.chooseName(flow, browser, username)
        return pageReply(services, 'sso-continue.page', confirmValues(signedIn, true), {
          acceptLanguage,
          isSecret: true,
        })
      } catch (error) {
        if (!(error instanceof ProtocolError) || error instanceof SignInFailure || error.status >= 500) throw error
        const choice = await singleSignOn.nameChoice(flow, browser)
        const values = nameValues(flow, choice, username)
        const options = { status: 400, problem: error, acceptLanguage, isSecret: true } as const
        return pageReply(services, 'sso-name.page', values, options)
      }
    }),
)

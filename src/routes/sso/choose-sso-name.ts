import { ProtocolError } from '../../core/errors.ts'
import { Type } from '../../core/shapes.ts'
import { SignInFailure } from '../../domain/sso/failure.ts'
import { endpoint } from '../../http/endpoint.ts'
import { cookieOf, orFailurePage, unstoredPage } from './browser.ts'
import { confirmPage, namePage } from './pages.ts'

const Form = Type.Object({ flow: Type.String(), username: Type.String() })

/** Only the browser whose cookie and flow fit together gets an account: a form on another site can send neither, and may not try. */
export const chooseSsoName = endpoint(
  'POST /_hearth/sso/name',
  { auth: 'none', limited: 'other', body: Form, forms: true },
  (request, { singleSignOn, config }) =>
    orFailurePage(config, async () => {
      if (request.fetchSite === 'cross-site') throw new SignInFailure('ended')
      const { flow } = request.body
      const username = request.body.username.trim()
      const browser = cookieOf(request, config)
      try {
        const signedIn = await singleSignOn.chooseName(flow, browser, username)
        return unstoredPage(confirmPage(config.server_name, signedIn, true))
      } catch (error) {
        if (!(error instanceof ProtocolError) || error instanceof SignInFailure || error.status >= 500) throw error
        const choice = await singleSignOn.nameChoice(flow, browser)
        return unstoredPage(namePage(config.server_name, flow, choice, { username, problem: error.message }))
      }
    }),
)

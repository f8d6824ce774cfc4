import { ProtocolError } from '../../../core/errors.ts'
import { Type } from '../../../core/shapes.ts'
import { networkOf } from '../../../domain/network.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { goTo } from '../../oauth/answer.ts'
import { pageReply } from '../../web/page.ts'
import { ownPage } from '../visitor.ts'
import { REGISTER, stepsAddress } from './sign-up-steps.ts'

/** Begins a registration: its stages follow on pages of their own. */
export const showSignUp = endpoint(
  'GET /_hearth/account/sign-up',
  { auth: 'none', limited: 'other', query: Type.Object({ next: Type.Optional(Type.String()) }) },
  async ({ query, ip, isForwarded, acceptLanguage }, services) => {
    try {
      const flows = await services.registration.flows(isForwarded)
      const attempt = {
        operation: REGISTER,
        requester: undefined,
        address: networkOf(ip),
        auth: undefined,
        body: {},
        flows,
      }
      const outcome = await services.interactiveAuth.advance(attempt)
      const session = 'challenge' in outcome ? String(outcome.challenge.session) : ''
      return goTo(stepsAddress(ownPage(query.next), session))
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.errcode !== 'M_FORBIDDEN') throw error
      return pageReply(services, 'account-closed.page', {}, { acceptLanguage, status: 403, isSecret: true })
    }
  },
)

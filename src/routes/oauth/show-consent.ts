import { endpoint } from '../../http/endpoint.ts'
import { signInAddress, visitorOf } from '../account/visitor.ts'
import { goTo } from './answer.ts'
import { consentPage, endedPage, pendingConsent } from './consent.ts'

/** Asks a person whether an app may use their account. Who is not signed in does that first. */
export const showConsent = endpoint(
  'GET /_hearth/oauth/consent/{id}',
  { auth: 'none', limited: 'other' },
  async (request, services) => {
    const { id } = request.params
    const consent = await pendingConsent(services, request, id)
    if (consent === undefined) return endedPage(services, request)
    const visitor = await visitorOf(request, services)
    if (visitor.session !== undefined) return consentPage(services, request, visitor, consent)
    const { wantsAccount, loginHint } = consent.pending
    return goTo(signInAddress(`/_hearth/oauth/consent/${id}`, { wantsAccount, loginHint }))
  },
)

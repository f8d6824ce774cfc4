import type { Services } from '../../domain/services.ts'
import type { RawReply } from '../../http/endpoint.ts'
import { pageReply } from '../web/page.ts'
import { proofAddress } from './addresses.ts'
import { orFailurePage } from './browser.ts'
import { demandValues } from './pages.ts'

/** The fallback page of the stage `m.login.sso`. */
export function ssoFallback(
  session: string,
  services: Services,
  request: { readonly acceptLanguage: string | undefined },
): Promise<RawReply> {
  const { singleSignOn, config } = services
  return orFailurePage(services, request, async () => {
    const demand = await singleSignOn.demandOf(session)
    const choices = demand.providers.map(({ id, name }) => ({ name, address: proofAddress(config, id, session) }))
    const { acceptLanguage } = request
    return pageReply(services, 'sso-prove.page', demandValues(demand, choices), { acceptLanguage, isSecret: true })
  })
}

import type { Services } from '../../domain/services.ts'
import type { RawReply } from '../../http/endpoint.ts'
import { proofAddress } from './addresses.ts'
import { orFailurePage, unstoredPage } from './browser.ts'
import { demandPage } from './pages.ts'

/** The fallback page of the stage `m.login.sso`. */
export function ssoFallback(session: string, { singleSignOn, config }: Services): Promise<RawReply> {
  return orFailurePage(config, async () => {
    const demand = await singleSignOn.demandOf(session)
    const choices = demand.providers.map(({ id, name }) => ({ name, address: proofAddress(config, id, session) }))
    return unstoredPage(demandPage(config.server_name, demand, choices))
  })
}

import { nameOfAddress } from '../../core/return-address.ts'
import type { ProviderAnswer } from '../../domain/oauth/authorization-server.ts'
import type { Client } from '../../domain/oauth/clients.ts'
import { publicBaseUrl } from '../../domain/public-address.ts'
import type { Services } from '../../domain/services.ts'
import { type RawReply, rawReply } from '../../http/endpoint.ts'
import { pageReply } from '../web/page.ts'
import { goTo } from './answer.ts'

interface Reader {
  readonly acceptLanguage: string | undefined
}

/**
 * The page that leads back to an app. A browser opens an app's own address only when a person follows a link, and the address that an
 * app has claimed only from a page.
 */
function returnPage(services: Services, location: string, client: string, { acceptLanguage }: Reader): RawReply {
  const script = `location.replace(${JSON.stringify(location).replaceAll('<', '\\u003c')})`
  return pageReply(
    services,
    'oauth-return.page',
    { client, link: location },
    { acceptLanguage, script, isSecret: true },
  )
}

/**
 * The page for a request that no client can be told about: the client or its address is not the one that was registered.
 *
 * @param reason for the people who make the client: in English, whatever the language of the page
 */
export function refusedPage(services: Services, reason: string, { acceptLanguage }: Reader, status = 400): RawReply {
  return pageReply(services, 'oauth-refused.page', { reason }, { acceptLanguage, status, isSecret: true })
}

function reasonIn(body: string): string {
  try {
    const { error, error_description } = JSON.parse(body) as { error?: string; error_description?: string }
    return [error, error_description].filter((each) => each !== undefined).join(': ')
  } catch {
    return ''
  }
}

/** The authorisation server's answer to a browser. `isNative`: whether the client is an app. */
export function browserAnswer(
  services: Services,
  answer: ProviderAnswer,
  { isNative, client }: { readonly isNative: boolean; readonly client: Client | undefined },
  reader: Reader,
): RawReply {
  const { location, status, cookies, body } = answer
  if (location === undefined) {
    if (status >= 500) return rawReply({ status, body })
    return refusedPage(services, reasonIn(body), reader, status)
  }
  if (location.startsWith(`${publicBaseUrl(services.config)}/`) || location.startsWith('/'))
    return goTo(location, cookies)
  const isLoopback = location.startsWith('http:')
  if (!isNative || isLoopback) return goTo(location, cookies)
  return returnPage(services, location, client?.metadata.client_name ?? nameOfAddress(location), reader)
}

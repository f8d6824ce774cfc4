import type { ProviderAnswer } from '../../domain/oauth/authorization-server.ts'
import type { Services } from '../../domain/services.ts'
import { type RawReply, rawReply } from '../../http/endpoint.ts'
import type { EndpointRequest } from '../../http/request.ts'

const UNSTORED = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }

/** An answer to a client, as JSON that nobody stores. */
export function clientAnswer(body: object, status = 200): RawReply {
  return rawReply({ status, headers: UNSTORED, body: JSON.stringify(body) })
}

/** An error for a client (RFC 6749, section 5.2). */
export function oauthError(error: string, error_description: string, status = 400): RawReply {
  return clientAnswer({ error, error_description }, status)
}

/** Sends a browser on. */
export function goTo(location: string, cookies: readonly string[] = []): RawReply {
  const headers = { ...UNSTORED, location, ...(cookies.length > 0 && { 'set-cookie': [...cookies] }) }
  return rawReply({ status: 303, headers, body: '' })
}

export function isForm(request: Pick<EndpointRequest, 'header'>): boolean {
  return /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(request.header('content-type') ?? '')
}

/** Hands a request on to the authorisation server. */
export async function passOn(
  { oauth }: Services,
  request: EndpointRequest,
  { method, path, body }: { readonly method: 'GET' | 'POST'; readonly path: string; readonly body?: string },
): Promise<ProviderAnswer> {
  const server = await oauth.server()
  const { ip, userAgent } = request
  const cookies = request.header('cookie')
  return server.handle({ method, path, cookies, contentType: request.header('content-type'), body, ip, userAgent })
}

/** Its answer to a client. */
export function clientAnswerOf({ status, body }: ProviderAnswer): RawReply {
  return rawReply({ status, headers: UNSTORED, body: body === '' ? '{}' : body })
}

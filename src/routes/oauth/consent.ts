import { hostOf } from '../../core/oauth/client-metadata.ts'
import { nameOfAddress } from '../../core/return-address.ts'
import type { PendingAuthorization } from '../../domain/oauth/authorization-server.ts'
import type { Client } from '../../domain/oauth/clients.ts'
import type { Services } from '../../domain/services.ts'
import type { RawReply } from '../../http/endpoint.ts'
import type { EndpointRequest } from '../../http/request.ts'
import { signInAddress, type Visitor, visitorForm } from '../account/visitor.ts'
import { pageReply } from '../web/page.ts'
import { askedSession } from './asked-session.ts'

export interface Consent {
  readonly pending: PendingAuthorization
  readonly client: Client
}

/** What a client asks for, by the browser's cookies. The address names the request too: two may be open in one browser. */
export async function pendingConsent(
  { oauth }: Services,
  request: Pick<EndpointRequest, 'header'>,
  id: string,
): Promise<Consent | undefined> {
  const pending = await (await oauth.server()).pending(request.header('cookie'))
  if (pending === undefined || pending.id !== id) return undefined
  const client = await oauth.clients.find(pending.clientId)
  return client && { pending, client }
}

export function endedPage(services: Services, { acceptLanguage }: Pick<EndpointRequest, 'acceptLanguage'>): RawReply {
  return pageReply(services, 'oauth-ended.page', {}, { acceptLanguage, status: 400, isSecret: true })
}

/** Where the form leads: browsers also check the redirects that follow it. */
function targetsOf(redirectUri: string): string[] {
  return /^https?:/.test(redirectUri) ? [new URL(redirectUri).origin] : []
}

/** Who asks, for which account, and where the answer goes. A name proves nothing, so the domain comes first. */
export async function consentPage(
  services: Services,
  { acceptLanguage }: Pick<EndpointRequest, 'acceptLanguage'>,
  visitor: Visitor,
  { client, pending }: Consent,
): Promise<RawReply> {
  const { metadata } = client
  const next = `/_hearth/oauth/consent/${pending.id}`
  return pageReply(
    services,
    'oauth-consent.page',
    {
      form: visitorForm(visitor, {}),
      host: hostOf(metadata),
      name: metadata.client_name,
      user_id: visitor.session?.userId,
      returns_to: nameOfAddress(pending.redirectUri),
      ...(await askedSession(services, pending.scope, visitor)),
      policy: metadata.policy_uri,
      terms: metadata.tos_uri,
      other_account: `${signInAddress(next, {})}&other=yes`,
    },
    { acceptLanguage, isSecret: true, formTargets: targetsOf(pending.redirectUri), cookies: visitor.cookies },
  )
}

import type { Config } from '../../config/schema.ts'
import type { ProtocolError } from '../../core/errors.ts'
import type { Services } from '../../domain/services.ts'
import type { RawReply } from '../../http/endpoint.ts'
import type { EndpointRequest } from '../../http/request.ts'
import { choicesOf } from '../sso/pages.ts'
import { pageReply } from '../web/page.ts'
import { type Visitor, visitorForm } from './visitor.ts'

interface Shown {
  /** The page after this one. */
  readonly next: string
  readonly username: string
  /** Whether the person wants another account than the one that they are signed in to. */
  readonly isOther?: boolean | undefined
  readonly problem?: ProtocolError | undefined
}

/** A client's hint names a user as `mxid:@alice:example.org`. */
export function nameInHint(hint: string | undefined): string {
  const name = hint?.replace(/^mxid:/, '') ?? ''
  return name.length <= 255 ? name : ''
}

/** The place where people get a token with which they sign in here. */
function portalOf({ jwt }: Pick<Config, 'jwt'>, next: string): { name: string; address: string }[] {
  if (jwt.secret === undefined || jwt.portal_url === undefined) return []
  const address = new URL(jwt.portal_url)
  address.searchParams.set('next', next)
  return [{ name: jwt.portal_name, address: address.href }]
}

/** Asks for a name and a password, or lets people choose another service. */
export async function signInPage(
  services: Services,
  { acceptLanguage, isForwarded }: Pick<EndpointRequest, 'acceptLanguage' | 'isForwarded'>,
  visitor: Visitor,
  { next, username, problem, isOther }: Shown,
): Promise<RawReply> {
  const query = new URLSearchParams({ next })
  const known = isOther ? undefined : visitor.session?.userId
  const providers = [...services.singleSignOn.providers.values()].map(({ id, name }) => ({
    name,
    address: `/_hearth/account/provider/${encodeURIComponent(id)}?${query}`,
  }))
  const choices = [...providers, ...portalOf(services.config, next)]
  const canRegister = await services.registration.isPossible(isForwarded)
  return pageReply(
    services,
    'account-sign-in.page',
    {
      form: visitorForm(visitor, { next }),
      username: known ?? username,
      is_again: known === undefined ? '' : 'yes',
      choices: choicesOf(choices),
      sign_up: canRegister ? `/_hearth/account/sign-up?${query}` : '',
      reset: services.config.contact.validated_elsewhere.includes('email') ? '' : '/_hearth/account/reset',
    },
    { acceptLanguage, problem, status: problem?.status, isSecret: true, cookies: visitor.cookies },
  )
}

import type { ProtocolError } from '../../../core/errors.ts'
import type { UiaView } from '../../../domain/accounts/interactive-auth.ts'
import type { Services } from '../../../domain/services.ts'
import type { RawReply } from '../../../http/endpoint.ts'
import type { EndpointRequest } from '../../../http/request.ts'
import { FALLBACK_STAGES } from '../../web/fallback-stages.ts'
import { pageReply } from '../../web/page.ts'
import { type Visitor, visitorForm } from '../visitor.ts'

/** The operation that registers: the stages of its authentication are shown here, one page each. */
export const REGISTER = 'POST C/register'

/** The stage that is due; undefined if only the name and the password are missing. An address that is not required can be added later. */
export function dueStage(
  { next }: UiaView,
  { config: { registration } }: Pick<Services, 'config'>,
): string | undefined {
  const optional = [
    ...(registration.email === 'required' ? [] : ['m.login.email.identity']),
    ...(registration.msisdn === 'required' ? [] : ['m.login.msisdn']),
    'm.login.dummy',
  ]
  return next.find((stage) => FALLBACK_STAGES.has(stage) && !optional.includes(stage))
}

/** The page after the sign-up is part of the path, so that all forms and links between keep it. */
export const stepsAddress = (next: string, session: string): string =>
  `/_hearth/account/sign-up/${Buffer.from(next).toString('base64url')}?${new URLSearchParams({ session })}`

export const nextIn = (path: string): string => Buffer.from(path, 'base64url').toString()

/** Asks for the name and the password of the new account. */
export function namePage(
  services: Services,
  { acceptLanguage }: Pick<EndpointRequest, 'acceptLanguage'>,
  visitor: Visitor,
  {
    session,
    username,
    problem,
  }: { readonly session: string; readonly username?: string; readonly problem?: ProtocolError },
): RawReply {
  const values = {
    form: visitorForm(visitor, { session }),
    username,
    min_length: String(services.config.passwords.min_length),
  }
  const { cookies } = visitor
  const options = { acceptLanguage, problem, status: problem?.status, isSecret: true, cookies } as const
  return pageReply(services, 'account-sign-up.page', values, options)
}

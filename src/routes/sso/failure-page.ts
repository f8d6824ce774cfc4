import { nameOfAddress } from '../../core/return-address.ts'
import type { Services } from '../../domain/services.ts'
import type { SignInFailure } from '../../domain/sso/failure.ts'
import type { RawReply } from '../../http/endpoint.ts'
import { pageReply } from '../web/page.ts'
import { againAddress } from './addresses.ts'

/** The page for a failed sign-in. */
export function failurePage(
  services: Pick<Services, 'pages' | 'config'>,
  { reason, retry, errcode, status }: SignInFailure,
  acceptLanguage: string | undefined,
): RawReply {
  const { config } = services
  const purpose = retry?.purpose
  return pageReply(
    services,
    `sso-${reason}.page`,
    {
      provider: config.sso.providers.find(({ id }) => id === retry?.providerId)?.name,
      again: retry && againAddress(config, retry),
      client: purpose?.kind === 'login' ? nameOfAddress(purpose.returnTo) : '',
      errcode,
    },
    { status, acceptLanguage, isSecret: true },
  )
}

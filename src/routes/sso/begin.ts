import { isReturnAddress } from '../../core/return-address.ts'
import { type Static, Type } from '../../core/shapes.ts'
import type { Services } from '../../domain/services.ts'
import { SignInFailure } from '../../domain/sso/failure.ts'
import type { RawReply } from '../../http/endpoint.ts'
import { cookieOf, sendOn } from './browser.ts'

/** All optional, because a missing parameter is answered with a page. */
export const SsoQuery = Type.Object({
  redirectUrl: Type.Optional(Type.String()),
  action: Type.Optional(Type.String()),
  'org.matrix.msc3824.action': Type.Optional(Type.String()),
})

export type Asked = Static<typeof SsoQuery>

/** @throws SignInFailure `bad-address` */
export function returnAddressOf({ redirectUrl }: Asked): string {
  if (redirectUrl === undefined || !isReturnAddress(redirectUrl)) throw new SignInFailure('bad-address')
  return redirectUrl
}

/** Redirects a browser to a provider, for a login of a client. */
export async function beginLogin(
  request: { readonly query: Asked; cookie(name: string): string | undefined },
  { singleSignOn, config }: Services,
  providerId: string,
): Promise<RawReply> {
  const purpose = { kind: 'login', returnTo: returnAddressOf(request.query) } as const
  const wantsAccount = request.query.action === 'register'
  const begun = await singleSignOn.begin({ providerId, purpose }, cookieOf(request, config), wantsAccount)
  return sendOn(begun.location, config, begun.browser)
}

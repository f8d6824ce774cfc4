import { createSingleSignOn, type SingleSignOn } from '../sso/single-sign-on.ts'
import { createOauthServices, type OauthServices } from './oauth-services.ts'

/** How people sign in: at other services, and on the pages of this server for an app. */
export interface SignInServices {
  readonly singleSignOn: SingleSignOn
  readonly oauth: OauthServices
}

export function createSignInServices(
  parts: Parameters<typeof createSingleSignOn>[0] & Parameters<typeof createOauthServices>[0],
): SignInServices {
  return { singleSignOn: createSingleSignOn(parts), oauth: createOauthServices(parts) }
}

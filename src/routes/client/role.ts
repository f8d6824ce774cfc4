import { isAccessToken } from '../../domain/accounts/access-tokens.ts'
import type { Requester } from '../../domain/accounts/requester.ts'
import type { Services } from '../../domain/services.ts'
import { CLIENT_CODES, type Role } from '../../http/role.ts'

/** Who holds an access token here, or is an application service. */
export function clientRole({ config, sessions, appservices }: Services): Role<Requester> {
  return {
    codes: CLIENT_CODES,
    maxBodyBytes: config.limits.max_body_bytes,
    // Our own tokens are told by how they look; any other may be that of an application service.
    authenticate: (token, as) =>
      isAccessToken(token) ? sessions.find(token) : (appservices.callers.find(token, as()) ?? sessions.find(token)),
    appserviceOf(token) {
      const appservice = appservices.registry.byToken(token)
      return appservice && { appservice, isUnlimited: true }
    },
    seen: (requester, ip, userAgent) => sessions.seen(requester, ip, userAgent),
  }
}

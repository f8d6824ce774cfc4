import { mayBeAccessToken } from '../../domain/accounts/access-tokens.ts'
import type { Requester } from '../../domain/accounts/requester.ts'
import type { Services } from '../../domain/services.ts'
import { CLIENT_CODES, type Role } from '../../http/role.ts'

/** The callers of the client API: holders of an access token, and application services. */
export function clientRole({ config, sessions, appservices }: Services): Role<Requester> {
  return {
    codes: CLIENT_CODES,
    maxBodyBytes: config.limits.max_body_bytes,
    // Our own tokens have a known form, which `sessions` looks at if it does not know one; any other may belong to an application service.
    authenticate: (token, as) =>
      mayBeAccessToken(token)
        ? (sessions.find(token) ?? appservices.callers.find(token, as()))
        : (appservices.callers.find(token, as()) ?? sessions.find(token)),
    appserviceOf(token) {
      const appservice = appservices.registry.byToken(token)
      return appservice && { appservice, isUnlimited: true }
    },
    seen: (requester, ip, userAgent) => sessions.seen(requester, ip, userAgent),
  }
}

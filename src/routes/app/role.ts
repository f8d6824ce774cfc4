import type { HostedRequester } from '../../domain/appservices/requester.ts'
import { MAX_FEDERATION_BODY_BYTES } from '../../domain/limits.ts'
import type { Services } from '../../domain/services.ts'
import { HOSTED_CODES, type Role } from '../../http/role.ts'

/** A homeserver that calls an application service in this process, by its `hs_token`. */
export function appRole({ appservices }: Services): Role<HostedRequester> {
  return {
    codes: HOSTED_CODES,
    maxBodyBytes: MAX_FEDERATION_BODY_BYTES,
    authenticate(token) {
      const hosted = appservices.hosted.byToken(token)
      return hosted && { hosted, isUnlimited: true }
    },
  }
}

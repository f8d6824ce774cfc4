import type { IdentityRequester } from '../../domain/identity/requester.ts'
import type { Services } from '../../domain/services.ts'
import { IDENTITY_CODES, type Role } from '../../http/role.ts'

/** A user of the identity service, who has accepted its terms. */
export function identityRole({ config, identity }: Services): Role<IdentityRequester> {
  return {
    codes: IDENTITY_CODES,
    maxBodyBytes: config.limits.max_body_bytes,
    headers: { 'cache-control': 'no-store' },
    authenticate: (token) => identity.accounts.find(token),
    admit: ({ userId }, { options }) => (options.beforeTerms ? undefined : identity.terms.require(userId)),
  }
}

import { MAX_ANONYMOUS_BODY_BYTES } from '../../domain/limits.ts'
import { CLIENT_CODES, type Role } from '../../http/role.ts'

/** Callers show an OpenID token in the body instead of an access token. Clients expect `M_BAD_JSON` for every flaw of a body. */
export const livekitRole = (): Role => ({
  codes: { ...CLIENT_CODES, missingParam: 'M_BAD_JSON' },
  maxBodyBytes: MAX_ANONYMOUS_BODY_BYTES,
  authenticate: () => undefined,
})

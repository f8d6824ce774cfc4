import { apiOf } from '../../http/mount.ts'
import { identityAdminEndpoints } from './identity.ts'
import { adminEndpoints } from './index.ts'
import { adminRole, identityAdminRole } from './role.ts'

/** The admin API. */
export const adminApi = apiOf(() => adminEndpoints, adminRole)

/** The admin API of an identity service without a homeserver. */
export const identityAdminApi = apiOf(() => identityAdminEndpoints, identityAdminRole)
